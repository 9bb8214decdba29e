"""Network connections, and what clients say on them.

==================  =====================================================================
``connection``      bytes in, packets out, coalesced per turn of the loop
``websocket``       the same in the frames of WebSocket
``conversation``    what a client says, packet by packet
``incoming``        what it publishes, and how that is acknowledged
``reasons``         what it is told of why something was refused
``services``        all of the broker that a conversation calls upon
==================  =====================================================================
"""
