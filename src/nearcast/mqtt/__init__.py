"""MQTT as it is spoken on the wire: packets of both versions, and place, context and time on top of them.

``stream`` turns bytes into packets and packets into bytes; ``contract`` is what broker and client share of nearcast
itself: events, subscriptions, positions and contexts as properties and payloads (docs/mqtt.md).
"""
