"""The way of a publish: who gets it, what is written, how it goes out.

================  =====================================================================
``publishing``    one publish: checks, receivers, journal, delivery, acknowledgement
``batching``      what comes in one turn of the loop, together: ``qos0_batch``, ``qos1_batch``
``router``        who gets an event: matcher, filter schemes, shared subscriptions
``underway``      an event between the choice of its receivers and the last of its copies
``dispatch``      copies on their way out: what goes over which connection
``message``       what goes out, encoded once for all who get the same bytes
``entries``       events as the journal has them
``retained``      the last message of each topic
``recent``        events that are here already, by the ids that their publishers gave them
``ports``         what publishing asks of others: who waits for other times, other brokers, who looks on
================  =====================================================================
"""
