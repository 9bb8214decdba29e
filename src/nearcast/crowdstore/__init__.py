"""Publish/subscribe that remembers, without a broker (THYME): a crowd keeps what its members publish, and what they want.

Two mechanisms behind one interface (``storage.Storage``): ``publish_local`` keeps publications where they are made and tells everybody
every subscription (THYME-PL/SG); ``data_centric`` keeps both in the cells of a grid that their tags hash to (THYME-DCS).
"""
