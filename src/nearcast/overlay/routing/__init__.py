"""How a message finds those it is for (Contextcast 3.3, 4.3, 5.3).

===================  ===============================================================================
``router``            the component: local contexts, messages that come by, and what it knows of others
``context_node``      a router's side of an access network: devices that register contexts
``context_host``      a device with its applications; the last check
``reporting``         what of a local context the network is told: exactly, by area, by distance
``senders``           who may address whom, and how much of it
``knowledge``         the interface of what a router knows of the contexts behind its neighbours
``reference``         everything: each context reaches each router
``hop_local``         what strategies share whose entries mean "behind me"
``aggregated``        all, but coarsely: few contexts that stand for many
``adaptive``          what pays: composites for attributes that many messages ask for
``adaptive_link``     what it measures on one link, and what pays
``absences``          who is not behind a link, for those strategies that want to hear of it
``merged``            the same with composites that are coarse
===================  ===============================================================================

Sections, definitions and algorithms are those of the Contextcast dissertation.
"""
