"""What was recorded elsewhere, as rows of the record tables: GPS traces, moving features, vehicle positions, tweets."""

from nearcast.pipeline.external.comma_separated import COLUMNS, read_csv
from nearcast.pipeline.external.gpx import read_gpx
from nearcast.pipeline.external.gtfs_realtime import read_gtfs_realtime
from nearcast.pipeline.external.ingest import FORMATS, Ingestion, format_of, ingest
from nearcast.pipeline.external.moving_features import read_moving_features
from nearcast.pipeline.external.moving_features_csv import read_moving_features_csv
from nearcast.pipeline.external.parsing import External
from nearcast.pipeline.external.tweets import read_tweets

__all__ = [
    "COLUMNS",
    "FORMATS",
    "External",
    "Ingestion",
    "format_of",
    "ingest",
    "read_csv",
    "read_gpx",
    "read_gtfs_realtime",
    "read_moving_features",
    "read_moving_features_csv",
    "read_tweets",
]
