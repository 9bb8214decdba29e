"""Stateless gateways: a few receivers of an event pass it on to those near them (BYPASS.KOM 4.3.4, 6.4.2).

At the broker:

``selection``       what every algorithm of selection is: who serves, and whom; and the ledger of who has served
``leach``           LEACH's threshold; ``dkc_leach`` and ``skc_leach`` rank by it, and draw against it
``cs_wca``          clusters first (``clusters``), then one gateway in each, by WCA's weight
``registry``        the algorithms by name, and their parameters
``count``           how many gateways: a share of the receivers, or what their density asks for
``broker``          receivers are told by way of gateways, those that cannot be are told directly
``expectations``    who has not acknowledged in time, and whom to trust again

On clients: ``client`` passes on and acknowledges, ``spreading`` is how it reaches those near; ``messages`` is what clients and broker say to
each other.
"""
