"""Routers find each other, keep a mesh of at most k links, and agree on one tree (Contextcast 2.4.4).

====================  ====================================================================================
``topology``           the component: what a router sees
``mesh``               links to others: made, kept alive, given up
``seeking``            the expanding ring in which a newcomer finds neighbours
``flooding``           link states reach everybody, whatever is lost or overtaken on the way
``link_state``         what each router says of its links, and what is known of all
``spanning_tree``      the tree that follows from it
``given``              a topology that is there from the start
``models``             topologies as the documents' experiments have them
====================  ====================================================================================
"""
