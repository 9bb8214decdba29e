"""Messages to those who were there, and to those who will be (Contextcast, chapter 6).

====================  ====================================================================================
``temporal_router``    the component: a router's part in all of this
``archive``            the contexts that were registered at one node, and when
``areas``              behind which neighbour nodes lie that may know somebody
``lookup``             the way of a question to them, and of their answers: SH, FCH, PCHn
``attribute_index``    another way, for messages without a place
``xcast``              to the trusted nodes of many identities at once
``identities``         pseudonyms that one trusted node can resolve
``trusted_node``       knows who somebody is, judges when he was there (``uniting``), and delivers
``mailbox``            where messages wait for those who are away
``entity``             a device's side of it
``confirming``         messages that arrive although wires lose some
====================  ====================================================================================

Sections and algorithms are those of the Contextcast dissertation; `docs/temporal.md` says where this differs, and why.
"""
