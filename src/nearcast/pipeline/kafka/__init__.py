"""Kafka beside the broker: record tables as topics, to be written to and to be read from.  Needs the package confluent-kafka.

============  ==========================================================================
``options``   what may be set, and what is refused
``messages``  rows of a table as messages of its topic, and back
``stretch``   any offsets of a partition
``reader``    the same as Spark asks for it: batches, streams, limits
``writer``    each batch once, in transactions
``source``    all of it under one name, ``nearcast-kafka``
============  ==========================================================================
"""

from nearcast.pipeline.kafka.messages import messages, read_topic, rows, topic_options
from nearcast.pipeline.kafka.source import KafkaSource, register

__all__ = ["KafkaSource", "messages", "read_topic", "register", "rows", "topic_options"]
