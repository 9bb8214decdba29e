"""MQTT as it is spoken on the wire: packets of both versions, and place, context and time on top of them.

``stream`` turns bytes into packets and packets into bytes.  What broker and client say to each other beyond that
(docs/mqtt.md): ``publication`` and ``requests`` are events and subscriptions as properties, ``positions`` are positions and
contexts as payloads, ``names`` the properties and topics that nearcast keeps for itself, ``options`` the same for clients
that cannot send properties.
"""
