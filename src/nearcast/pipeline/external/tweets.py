"""Messages of people who say where they are, as JSON lines in the shape of tweets: they become events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.model.time import Instant
from nearcast.pipeline.external.parsing import External, external, file_name, rfc3339

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC: Final = "tweets"
_SCHEMA: Final = (
    "id string, id_str string, created_at string, text string, full_text string, lang string, author_id string, "
    "user struct<id_str: string, screen_name: string>, "
    "coordinates struct<type: string, coordinates: array<double>>, geo struct<coordinates: array<double>>, "
    "entities struct<hashtags: array<struct<text: string, tag: string>>>, _corrupt_record string"
)


def read_tweets(spark: SparkSession, paths: Sequence[str], latest: Instant, topic: str = TOPIC) -> External:
    """Events with the text as payload and hashtags as tags; those without a place have none."""
    lines = spark.read.option("columnNameOfCorruptRecord", "_corrupt_record").schema(_SCHEMA).json(list(paths))
    text = F.coalesce("full_text", "text")
    found = lines.select(
        "*",
        file_name(),
        F.coalesce("_corrupt_record", F.to_json(F.struct("id_str", "created_at", text.alias("text")))).alias("raw"),
        F.when(F.col("_corrupt_record").isNotNull(), "is no JSON object").alias("problem"),
    )
    created = F.col("created_at")
    # "Wed Oct 10 20:19:24 +0000 2018": Spark reads no names of days.
    classic = F.try_to_timestamp(F.regexp_replace(created, r"^\w{3} ", ""), F.lit("MMM dd HH:mm:ss Z yyyy"))
    # GeoJSON has the longitude first; the older field beside it the latitude.
    lon = F.coalesce(F.get("coordinates.coordinates", F.lit(0)), F.get("geo.coordinates", F.lit(1)))
    lat = F.coalesce(F.get("coordinates.coordinates", F.lit(1)), F.get("geo.coordinates", F.lit(0)))
    tags = F.transform("entities.hashtags", lambda tag: F.coalesce(tag["text"], tag["tag"]))
    made = {
        "time": F.coalesce(rfc3339(created), classic),
        "event": F.coalesce("id_str", "id"),
        "publisher": F.coalesce("user.screen_name", "user.id_str", "author_id"),
        "topic": F.lit(topic),
        "lat": lat,
        "lon": lon,
        "bytes": F.coalesce(F.octet_length(text), F.lit(0)),
        "payload": text.cast("binary"),
        "tags": tags,
        "attributes": F.when(F.col("lang").isNotNull(), F.to_json(F.struct("lang"))),
    }
    return external(found, "events", made, {"time": created}, latest)
