"""Several brokers that act as one: events find clients wherever they are, and clients go from broker to broker.

=====================  =====================================================================
``federation``         the overlay on a live host, and all parts put together
``settings``           the section ``[federation]``
``statistics``         what it tells of itself
``joining``            how a broker comes in, and whom it refuses
``acquaintances``      brokers that were ever reached
``events``             events to other brokers and from them
``event_ids``          which events have been here
``custody``            what is kept until whoever is next has stored it
``parcels``            parcels that come by
``notices``            what all brokers know: homes of clients, topics that are wanted
``contexts``           what the overlay is told of the clients here
``interests``          which topics are wanted where
``replicas``           nothing is acknowledged before a neighbour has it as well, if that is wanted
``reconsidering``      what waits for brokers out of reach, once more
``roaming``            clients that come from another broker, and go to one
``withdrawals``        events that are taken back
``wire``               what brokers say to each other
=====================  =====================================================================
"""
