"""What can be kept at all: whoever sent it may be wrong, or lie."""

from __future__ import annotations

from typing import Final

import msgspec

from nearcast.crowdstore.access import genuine, genuine_withdrawal
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import EVERYTHING, REPLICAS, Entry, Gone, Indexed, Kept, Part
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.model.time import Instant

LARGEST: Final = 4_096
"""Bytes of an entry; metadata with its list of places, and a conjunction of a formula, have half of that at most (``service.METADATA``)."""

_encode: Final = msgspec.msgpack.Encoder().encode


def valid(entry: Entry, desk: Desk) -> bool:
    if len(_encode(entry)) > LARGEST:
        return False
    if isinstance(entry, Indexed):
        return _indexed(entry, desk)
    if isinstance(entry, Part):
        key = entry.tag == EVERYTHING or entry.tag in entry.present
        return key and Cell(*entry.cell) in desk.grid and timely(entry.version, desk)
    if isinstance(entry, Kept):
        return bool(entry.metadata.tags) and genuine(entry.metadata)
    return entry.subscription or genuine_withdrawal(entry.withdrawal)


def _indexed(entry: Indexed, desk: Desk) -> bool:
    item, tags = entry.item, entry.item.metadata.tags
    places = (item.active, *(place.cell for place in item.replicas))
    return (
        bool(entry.tags)
        and {*entry.tags} <= {*tags}
        and len(item.replicas) <= REPLICAS
        and all(Cell(*place) in desk.grid for place in places)
        and all(timely(place.at, desk) for place in item.replicas)
        and genuine(item.metadata)
    )


def timely(at: Instant, desk: Desk) -> bool:
    """The newest word counts: one from the far future would count for ever."""
    return at <= desk.now() + desk.state.memory


def remembered(gone: Gone, desk: Desk) -> Gone:
    """As it is remembered: with a time that is not far from this host's, else it would be forgotten at once, or never."""
    now, most = desk.now(), desk.state.memory // 2
    return msgspec.structs.replace(gone, at=min(max(gone.at, now - most), now + most))
