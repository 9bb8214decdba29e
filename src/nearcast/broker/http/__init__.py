"""The broker by HTTP: publish and query as CloudEvents or GeoJSON, transitions, health, metrics (docs/http.md).

==============  =====================================================================
``forms``       CloudEvents and GeoJSON, to and from events
``events``      publish, query, take back
``operations``  status, transitions, health, the journal's tail
``answers``     what jobs hand in: notifications for the past, plans
``scans``       how many read the journal at a time
``metrics``     for Prometheus
``doors``       who is asking; how errors are told
``app``         all routes, with OpenAPI
``listening``   the server that serves them on the broker's own loop
==============  =====================================================================
"""
