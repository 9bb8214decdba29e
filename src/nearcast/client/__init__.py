"""What applications import: ``nearcast.connect`` and what it gives (docs/client.md).

``protocol`` is MQTT 5 without a socket, ``connection`` brings it over TCP, TLS or WebSocket, ``link`` keeps such a connection
up, ``client`` is the interface of applications, and ``sync`` the same for programs without an event loop.
"""
