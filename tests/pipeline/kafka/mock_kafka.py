"""A Kafka of one process, for tests: the mock that comes with its client, at a port of this machine.

It keeps messages and offsets of groups; of transactions it knows only that they begin and end.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition


@contextlib.contextmanager
def mock_kafka() -> Iterator[str]:
    """Its address; it lives as long as the client that made it."""
    home = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    [broker] = home.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"
    home.flush(10)


def values(servers: str, topic: str) -> list[Any]:
    """All that is in a topic."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "enable.partition.eof": True, "log_level": 0}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        open_, found = set(partitions), []
        while open_:
            message = consumer.poll(10)
            assert message is not None
            if message.error() is None:
                found.append(json.loads(message.value() or b"null"))
            else:
                open_.discard(message.partition())
        return found
    finally:
        consumer.close()


def put(servers: str, topic: str, *texts: str, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for text in texts:
        producer.produce(topic, text, partition=partition)
    producer.flush(10)
