"""The way of a publish: who gets it, what is written, how it goes out.

================  =====================================================================
``publishing``    one publish: checks, receivers, journal, delivery, acknowledgement
``batching``      what comes in one turn of the loop, together: ``qos0_batch``, ``qos1_batch``
``router``        who gets an event: matcher, filter schemes, shared subscriptions
``message``       what goes out, encoded once for all who get the same bytes
``entries``       events as the journal has them
``retained``      the last message of each topic
================  =====================================================================
"""
