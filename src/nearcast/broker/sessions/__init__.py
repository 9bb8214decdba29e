"""What is remembered of clients, with or without a connection.

========================  =====================================================================
``session``               one client: subscriptions, and messages that it has not confirmed
``sessions``              all of them, and how they get through a restart
``lifecycle``             made, taken over, resumed, left, forgotten
``subscribing``           subscriptions as they come and go
``shared_subscriptions``  groups of which one member gets each message
``redelivery``            what a member of such a group left goes to another one
``confirmed_offsets``     what is not owed any more, although something older is
``wills``                 last messages
========================  =====================================================================
"""
