"""Events across time: subscriptions to what was, messages to whoever was or will be there, and what is taken back.

===================  =====================================================================
``service``          all of it put together
``replays``          subscriptions that begin in the past: ``replay`` is one of them, ``replaying`` gives it what is stored
``stored_events``    which events these are
``held_back``        live messages that wait until then
``addressing``       messages to whoever was in a context, or will be (Contextcast)
``context_history``  who was: the recorded past of clients
``validity``         when such a message becomes relevant to whom
``unpublishing``     taking an event back
``background``       the thread that reads the past
===================  =====================================================================
"""
