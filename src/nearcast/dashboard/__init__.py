"""The live map of a broker, for operators: what is happening, why, and what happened before (docs/dashboard.md).

``application.dashboard`` makes the routes that the command line hands to the broker's HTTP listener; nothing below knows of this room.

================  ===========================================================================
``contract``      everything that goes over the wire, as types
``application``   all routes
``doors``         who is looking, and who may: log-in, cookie, same origin
``headers``       what every answer tells the browser not to do
``pages``         the page, its style and its modules
``live``          the WebSocket of one viewer
``feed``          one picture for all viewers in each period; nothing while nobody looks
``positions``     the picture: the matcher's columns as bytes
``spectator``     a sample of what is published, with its receivers
``load``          how busy the broker is
``cells``         what the active filter schemes cut the ground into
``world``         streets, points and filter schemes
``tables``        sessions and subscriptions, to be searched
``one_client``    the broker with the eyes of one client
``commands``      transitions and rules
``past``          positions and events of a time ago
``heat``          how much of something there is where
================  ===========================================================================
"""
