"""The server that people connect to: MQTT with place, context and time (``nearcast serve``).

=====================  =====================================================================
``server``, ``core``   listeners, start, stop; all parts put together, and their restart
``connections``        network connections, and what clients say on them
``sessions``           what is remembered of a client, with or without a connection
``publishing``         the way of a publish: receivers, journal, delivery, acknowledgement
``temporal``           subscriptions to the past, messages to other times, unpublishing
``schemes``            filter schemes and transitions, live
``presence``           where clients are and what their contexts say; ``known_context``: what follows from it
``proximities``        the reach that a producer announces for its topics
``reserved``           topics that speak to the broker itself: position, context, unpublish ...
``answering``          events of the past that a job found for clients; ``answer_rows``: as they come
``refusals``           who was not let in, counted
``explaining``         why somebody got an event, or did not; ``explained``: as it is answered
``recorded``           what was, from journal and lake
``tracing``            how long a message takes where: spans of OpenTelemetry
``settings``, ``logs`` configuration
``access``             who may do what
``http``               the same by HTTP; metrics and health
``on_disk``            writing, and awaiting the commit
``sliced_work``        what would hold up the loop, in small steps
=====================  =====================================================================
"""
