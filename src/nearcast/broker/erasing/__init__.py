"""Erasing a person: from the journal and its state, the lake, and the map of identities.

==============  =====================================================================
``plan``        who is to be erased: written down first, so that it is carried on after a fall
``state``       the broker's durable state: sessions, retained messages, what is kept for other brokers
``erasure``     step by step, all of which may be done again
``live``        the same while the broker works; ``offline``: while it does not
==============  =====================================================================
"""
