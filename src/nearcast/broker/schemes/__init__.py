"""Filter schemes and their transitions, live.

====================  =====================================================================
``live``              the broker's halves of all schemes, without socket and disk
``scheming``          in their place in the broker: messages by MQTT, state on disk
``gradual_broker``    transitions of many clients in small steps; ``gradual_exchange``: what a step is
``plans``             plans from outside: schemes for clients or regions, gateways on or off
``regions``           regions as they are on disk
``settings``          ``[schemes]`` of the settings file
``text``              schemes as people write them
====================  =====================================================================
"""
