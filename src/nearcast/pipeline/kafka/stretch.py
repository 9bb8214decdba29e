"""The partitions of a topic, and any offsets of one of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from nearcast.errors import ConnectionFailed, InvalidSettings, NearcastError, OffsetTrimmed

PATIENCE: Final = 30.0
"""Seconds in which Kafka is expected to answer."""

_AT_ONCE: Final = 10_000
_MAKING: Final = 10.0
"""Seconds that a new topic takes at most."""

_PAUSE: Final = 0.1
COLUMNS: Final = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"
"""Those of Spark's own connector."""


@dataclass(frozen=True, slots=True)
class Topic:
    client: dict[str, str]
    name: str

    def extents(self) -> dict[int, tuple[int, int]]:
        """Of each partition the first offset, and the one after the last that was committed."""
        from confluent_kafka import TopicPartition

        with self._consumer() as consumer:
            found = consumer.list_topics(self.name, timeout=PATIENCE).topics[self.name]
            if found.error is not None:
                raise _no_topic(self.name, self._where)
            return {
                number: consumer.get_watermark_offsets(TopicPartition(self.name, number), timeout=PATIENCE)
                for number in sorted(found.partitions)
            }

    def batches(self, partition: int, first: int, last: int) -> Iterator[Any]:
        """Each message of these offsets once; not every offset has one."""
        from confluent_kafka import TopicPartition

        with self._consumer() as consumer:
            consumer.assign([TopicPartition(self.name, partition, first)])
            position = first
            while position < last:
                one = consumer.poll(PATIENCE)
                if one is None:
                    raise ConnectionFailed(
                        f"{self._where} has not answered for {PATIENCE:.0f} s; {self.name} was read up to {position} of {last}"
                    )
                come = [one, *consumer.consume(_AT_ONCE, timeout=0)]  # what is here already: otherwise it waits for all
                said = [message for message in come if self._is_message(message)]
                # What ends a transaction has an offset too: past the last message there may be nothing to wait for.
                position = max(message.offset() + (message.error() is None) for message in come)
                wanted = [message for message in said if message.offset() < last]
                if wanted:
                    yield _batch(wanted)

    def _is_message(self, message: Any) -> bool:
        from confluent_kafka import KafkaError

        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - so it is called
            return False
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001
            raise OffsetTrimmed(f"{self.name} at {self._where} no longer has what was to be read: {error.str()}", -1)
        raise NearcastError(f"{self.name} at {self._where} cannot be read: {error.str()}")

    @property
    def _where(self) -> str:
        return self.client["bootstrap.servers"]

    @contextlib.contextmanager
    def _consumer(self) -> Iterator[Any]:
        from confluent_kafka import Consumer

        settings: dict[str, Any] = {
            "group.id": "nearcast",  # which it never joins: Spark knows the offsets
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            **self.client,
        }
        with kafka_failures(self._where):
            consumer = Consumer(settings)
            try:
                yield consumer
            finally:
                consumer.close()


def have_topics(client: dict[str, str], names: Iterable[str]) -> None:
    """Make sure that there are these topics: most Kafkas make them when they are asked for."""
    from confluent_kafka import Producer

    where = client["bootstrap.servers"]
    with kafka_failures(where):
        producer = Producer(client)
        for name in names:
            deadline = time.monotonic() + _MAKING
            while producer.list_topics(name, PATIENCE).topics[name].error is not None:
                if time.monotonic() > deadline:
                    raise _no_topic(name, where)
                time.sleep(_PAUSE)


def _no_topic(name: str, where: str) -> InvalidSettings:
    return InvalidSettings(f"Kafka at {where} has no topic {name!r}, and makes none by itself; create it")


@contextlib.contextmanager
def kafka_failures(where: str) -> Iterator[None]:
    """Failures of Kafka's client within the block as one of ours."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise ConnectionFailed(
            f"Kafka at {where}: {error.args[0].str()}; is it running there, and are the settings right?"
        ) from None


def _batch(found: list[Any]) -> Any:
    import pyarrow as pa
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    stamps = [message.timestamp() for message in found]
    micros = [None if kind == TIMESTAMP_NOT_AVAILABLE else at * 1_000 for kind, at in stamps]
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([message.topic() for message in found], pa.string()),
            "partition": pa.array([message.partition() for message in found], pa.int32()),
            "offset": pa.array([message.offset() for message in found], pa.int64()),
            "timestamp": pa.array(micros, pa.timestamp("us", tz="UTC")),
            "key": pa.array([message.key() for message in found], pa.binary()),
            "value": pa.array([message.value() for message in found], pa.binary()),
        }
    )
