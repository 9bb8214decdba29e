"""Messages on their way into Kafka.

A task sends its messages in one transaction, together with a mark: in the consumer group that stands for this partition of this
query, the number of the batch after it.  Both are there, or neither; so a batch that Spark runs again finds what it has done
before.  That asks two things: the same batch has the same messages in each partition (``messages`` sees to it), and Kafka
still knows the group, which it forgets some days (``offsets.retention.minutes``) after the last batch.

Whoever reads with ``isolation.level=read_committed`` then sees each message once.  A write that is no stream has no number: run
again, it is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.taskcontext import TaskContext

from nearcast.errors import InvalidSettings, NearcastError
from nearcast.pipeline.kafka.options import SERVERS, KafkaOptions
from nearcast.pipeline.kafka.stretch import PATIENCE, kafka_failures

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
"""As Spark tells tasks of a stream what they belong to."""


_PATIENT: Final = {"transaction.timeout.ms": "900000"}
"""The longest that Kafka allows by default: a task may have much to send, and sends it in one transaction."""


@dataclass
class Sent(WriterCommitMessage):
    rows: int


@dataclass(frozen=True)
class Sending:
    """How the messages of a task are sent."""

    options: KafkaOptions
    name: str = field(default_factory=lambda: uuid4().hex)
    """Of this write, for all attempts of its tasks; a stream has its own, which outlives the process."""

    def write(self, iterator: Iterator[Any]) -> Sent:
        task = TaskContext.get()
        assert task is not None
        query, batch = self._which(task)
        return Sent(send(self.options, iterator, f"nearcast-{query}-{task.partitionId()}", batch))

    def _which(self, _: TaskContext) -> tuple[str, int]:
        """What is written, and the how manieth batch of it; also within a batch of a stream, which may write several times."""
        return self.name, 0


class BatchWriter(Sending, DataSourceArrowWriter):
    """Once."""


class StreamWriter(Sending, DataSourceStreamArrowWriter):
    """Micro-batch by micro-batch."""

    def _which(self, task: TaskContext) -> tuple[str, int]:
        return task.getLocalProperty(_QUERY) or self.name, int(task.getLocalProperty(_BATCH) or 0)


def check_columns(schema: StructType) -> None:
    """``InvalidSettings`` unless the rows are messages."""
    known = {"topic", "key", "value"}
    wrong = [each for each in schema if each.name not in known or each.dataType.simpleString() != "string"]
    if wrong or "value" not in schema.names:
        raise InvalidSettings(
            f"messages have the columns value, and perhaps key and topic, all of them texts, not {schema.simpleString()}; "
            "nearcast.pipeline.kafka.messages makes them of rows"
        )


def send(options: KafkaOptions, batches: Iterator[Any], name: str, number: int) -> int:
    """Send the messages of one partition of batch ``number``, unless that was done before; gives how many went out."""
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    with kafka_failures(options.client[SERVERS]):
        producer = Producer({**_PATIENT, **options.client, "transactional.id": name})
        # Ends what an earlier attempt has left open, and shuts out that attempt if it is still running.
        producer.init_transactions(PATIENCE)
        producer.list_topics(options.topic, PATIENCE)  # makes it, where topics are made as they are asked for
        group = Consumer({**options.client, "group.id": name, "enable.auto.commit": False})
        try:
            [mark] = group.committed([TopicPartition(options.topic, 0)], timeout=PATIENCE)
            if mark.offset > number:
                return 0
            producer.begin_transaction()
            sent = _produced(producer, options.topic, batches)
            marked = TopicPartition(options.topic, 0, number + 1)
            producer.send_offsets_to_transaction([marked], group.consumer_group_metadata(), PATIENCE)
            producer.commit_transaction(PATIENCE)
        except BaseException:
            with suppress(KafkaException):  # or readers would wait for it to time out
                producer.abort_transaction(PATIENCE)
            raise
        finally:
            group.close()
        return sent


def _produced(producer: Any, topic: str, batches: Iterator[Any]) -> int:
    """Hand all messages over; gives how many there were."""
    failed: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error.str())

    rows = 0
    for batch in batches:
        columns = [
            batch.column(name).to_pylist() if name in batch.schema.names else [None] * batch.num_rows
            for name in ("topic", "key", "value")
        ]
        for own, key, value in zip(*columns, strict=True):
            _produce(producer, own or topic, key, value, delivered)
        rows += batch.num_rows
    producer.flush(PATIENCE)
    if failed:
        raise NearcastError(f"Kafka did not take all messages of a batch: {failed[0]}")
    return rows


def _produce(
    producer: Any, topic: str, key: str | None, value: str | None, delivered: Callable[[Any, Any], None]
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=delivered)
        except BufferError:  # as much is on its way as may be
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
