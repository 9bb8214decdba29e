"""STEAM: producers say where their events matter, consumers only what they are about, and nobody needs a broker.

====================  ====================================================================================
``service``            what an application sees: announce, subscribe, raise
``event_type``         subject, content and attributes of events
``announcement``       an event type with its proximity, and the identifier of their group
``nucleus``            what both mechanisms share: subscriptions, filters, numbers, the memory of what came
``over_the_air``       beacons and proximity groups, from device to device
``through_uplink``     the same by way of a broker, behind the port ``uplink``
====================  ====================================================================================
"""
