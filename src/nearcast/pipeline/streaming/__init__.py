"""Matching on streams: what is known of clients is the state, events pass by it, one row for each comes out."""

from nearcast.pipeline.streaming.layout import check_layout
from nearcast.pipeline.streaming.match import match_stream
from nearcast.pipeline.streaming.settings import StreamSettings

__all__ = ["StreamSettings", "check_layout", "match_stream"]
