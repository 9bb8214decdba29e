"""The broker by HTTP: publish and query as CloudEvents or GeoJSON, transitions, health, metrics (docs/broker.md).

==================  =====================================================================
``events``          publish, query, take back
``formats``         CloudEvents and GeoJSON, to and from events
``operations``      status, transitions, health, the journal's tail
``jobs``            what jobs hand in: notifications for the past, plans
``scans``           how many read the journal at a time
``metrics``         for Prometheus
``pace``              how fast requests may come
``authentication``  who is asking
``problems``        how errors are told
``app``             all routes, with OpenAPI
``description``     what OpenAPI says beyond the routes themselves
``listening``       the server that serves them on the broker's own loop
==================  =====================================================================
"""
