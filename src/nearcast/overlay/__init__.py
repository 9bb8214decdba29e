"""Contextcast: messages for whoever has a context, over an overlay of routers.

====================  ====================================================================================
``handles``            names of contexts on links
``assurance``          links on which nothing is lost, as an option
``topology``           who is linked with whom, and the tree that all agree on
``values``             coarse contexts: merging, similarity, possible match
``aggregation``        few coarse contexts instead of the many that came over one link
``routing``            what routers tell each other of contexts, and the way of a message to those it is for
``temporal``           messages to those who were there, and who that was
====================  ====================================================================================
"""
