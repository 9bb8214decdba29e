"""Parameters of THYME-DCS; the paper gives none of its times, so these are ours."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nearcast.crowdstore.geographic.grid import SIDE
from nearcast.crowdstore.storage import Manner
from nearcast.transition.registry import DURATION, LENGTH


def _seconds(text: str) -> Meta:
    return Meta(gt=0, le=86_400, description=text, extra=DURATION)


class Settings(Manner, frozen=True, kw_only=True):
    """All but the making of it: ``manner.DataCentric`` does that."""

    south: Annotated[float, Meta(ge=-90, le=90, description="degrees of latitude of the area's southern border")]
    west: Annotated[float, Meta(ge=-180, le=180, description="degrees of longitude of the area's western border")]
    north: Annotated[float, Meta(ge=-90, le=90, description="degrees of latitude of the area's northern border")]
    east: Annotated[float, Meta(ge=-180, le=180, description="degrees of longitude of the area's eastern border")]
    side: Annotated[float, Meta(gt=0, le=10_000, description="side of a cell", extra=LENGTH)] = SIDE
    beacon: Annotated[float, _seconds("how often a host says which cell it is in, on average")] = 2.0
    settle: Annotated[float, _seconds("how long a host stands still before it is a member of a cell")] = 2.0
    listen: Annotated[float, _seconds("how long a newcomer listens, and waits for an answer, before it asks again")] = (
        3.0
    )
    timeout: Annotated[float, _seconds("after how long without an answer a cell is asked again")] = 3.0
    tries: Annotated[int, Meta(ge=1, le=100, description="how often a cell is asked at most")] = 4
    batch: Annotated[
        int, Meta(ge=1, le=100, description="so many objects of the past a subscription is told at once")
    ] = 20
    patience: Annotated[float, _seconds("how long a notification waits for a receiver that has moved")] = 120.0
    memory: Annotated[float, _seconds("how long it is remembered that something was withdrawn")] = 600.0
    hand_over: Annotated[bool, Meta(description="cells that empty and fill hand over what they keep")] = True
    skip: Annotated[bool, Meta(description="messages skip cells where hosts farther away are heard steadily")] = True
    gather: Annotated[
        float, _seconds("how long a host gathers copies that it has downloaded before it tells others of them")
    ] = 20.0
    anti_entropy: Annotated[bool, Meta(description="members of a cell compare what they keep")] = True
    period: Annotated[float, _seconds("how often they do")] = 10.0
