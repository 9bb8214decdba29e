"""The server that people connect to: MQTT with place, context and time (``nearcast serve``).

========================  =====================================================================
``server``                listeners, start, stop; what holds everything together
``connection``            one network connection: bytes in, packets out, coalesced per tick
``conversation``          what a client says on it, packet by packet
``session``, ``sessions`` what is remembered of a client, with or without a connection
``router``                who gets an event: matcher, filter schemes, shared subscriptions
``publishing``            the way of a publish: checks, journal, delivery, acknowledgement
``reserved``              topics that speak to the broker itself: position, context, unpublish ...
``settings``, ``access``  configuration; who may do what
``schemes``               filter schemes and transitions, live
``http``                  the same by HTTP; metrics and health
========================  =====================================================================
"""
