"""What routers know of contexts: less than there is, and never so little that somebody is missed.

================  ==================================================================================
``kinds``          what a type of attributes brings: merging, similarity, possible match
``registry``       which type has which kind; plug-ins register theirs here
``quantities``     numbers and instants
``places``         points and areas
``hierarchies``    paths
``nominals``       texts, truth values, tags, and plug-in types without a kind of their own
``coarse``         coarse contexts, and what two of them have in common
``domains``        how wide the values of an attribute range
``similarity``     how much alike two contexts are (4.4.3)
``possible``       whether somebody in a coarse context could match
``signatures``     names of attributes as bits
================  ==================================================================================

Sections and equations are those of the Contextcast dissertation.
"""
