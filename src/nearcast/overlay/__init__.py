"""Contextcast: messages for whoever has a context, over an overlay of routers.

====================  ====================================================================================
``topology``           who is linked with whom, and the tree that all agree on
====================  ====================================================================================
"""
