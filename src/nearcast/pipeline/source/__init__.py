"""The Spark data source ``nearcast``: a broker's journal as tables, and answers and plans back into the broker.

``register(spark)`` once per session, then ``spark.read`` or ``spark.readStream`` with ``.format("nearcast")``.

============  =======================================================================
``options``   what may be set, and what is refused
``lake``      the Parquet files of the lake: which offsets, which days
``link``      the broker by HTTP: waiting, asking again, errors in words
``tail``      what is not in the lake yet, decoded here and not in the broker
``stretch``   any offsets of a table from wherever they are at present
``reader``    the same as Spark asks for it: batches, streams, limits, filters
``writer``    notifications and plans, each done once however often it is sent
``source``    all of it under one name
============  =======================================================================
"""

from nearcast.pipeline.source.source import NearcastSource, register

__all__ = ["NearcastSource", "register"]
