"""Rows of the record tables as messages: a topic for each table, a JSON object for each row.

Instants are RFC 3339 with microseconds, bytes are Base64, null is left out.  The key is who or what the row is about: what
concerns one client, or one event, is in one partition of its topic.  There a batch comes after all batches before it; but within
a batch the rows of a key may stand in any order, since they were read by several tasks and have passed a shuffle.  Their time and
``offset`` say in which order they count.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

from nearcast.pipeline.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS: Final = 2
"""Tasks, and transactions, of a batch."""

_FORM: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}
_KEYS: Final = ("client", "event", "host")
_TORN: Final = "_torn"


def messages(topics: Mapping[str, DataFrame], parts: int = PARTS) -> DataFrame:
    """The rows of frames, by the topics they are to go to, as ``topic``, ``key`` and ``value``.

    They are dealt out by their keys: however a batch was read, each of its parts is the same when it is run again.
    """
    from functools import reduce

    from pyspark.sql import functions as F

    made = [
        frame.select(
            F.lit(topic).alias("topic"),
            next(
                (F.col(name).cast("string") for name in _KEYS if name in frame.columns), F.lit(None).cast("string")
            ).alias("key"),
            F.to_json(F.struct(*frame.columns), _FORM).alias("value"),
        )
        for topic, frame in topics.items()
    ]
    return reduce(lambda one, other: one.unionByName(other), made).repartition(parts, F.coalesce("key", "value"))


def rows(found: DataFrame, table: str) -> DataFrame:
    """Messages of ``nearcast-kafka``, or of Spark's own connector, as rows of a record table.

    Spark fails with a message that is no row of that table, and says which.
    """
    from pyspark.sql import functions as F

    schema = spark_schema(table)
    needed = [field.name for field in schema if not field.nullable]
    read = spark_schema(table).add(_TORN, "string")
    text = F.col("value").cast("string")
    row = F.from_json(text, read, {**_FORM, "columnNameOfCorruptRecord": _TORN})
    where = F.concat_ws(
        " ", F.lit("partition"), "partition", F.lit("offset"), "offset", F.lit(f"is no row of {table}:")
    )
    complaint = F.raise_error(
        F.concat(F.lit("topic "), F.col("topic"), F.lit(" "), where, F.lit(" "), F.left(text, F.lit(80)))
    )
    good = reduce(operator.and_, (F.col(f"row.{name}").isNotNull() for name in needed), F.col(f"row.{_TORN}").isNull())
    # Without a value it is the end of a key, in a topic that is compacted.
    parsed = found.where(text.isNotNull()).withColumn("row", row)
    return parsed.select(F.when(good, F.col("row")).otherwise(complaint).alias("row")).select(
        *(F.col(f"row.{name}").alias(name) for name in schema.names)
    )


def read_topic(
    spark: SparkSession, client: Mapping[str, str], topic: str, table: str, *, stream: bool = True, **options: str
) -> DataFrame:
    """The rows of a table in its topic, as a stream or as a batch; ``client`` are settings of Kafka's client."""
    from nearcast.pipeline.kafka.source import register

    register(spark)
    reader = spark.readStream if stream else spark.read
    return rows(reader.format("nearcast-kafka").options(**topic_options(client, topic, **options)).load(), table)


def topic_options(client: Mapping[str, str], topic: str, **options: str) -> dict[str, str]:
    """What to say to ``nearcast-kafka``."""
    return {**{f"kafka.{name}": value for name, value in client.items()}, "topic": topic, **options}
