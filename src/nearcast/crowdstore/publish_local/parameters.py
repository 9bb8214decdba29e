"""What can be set of PL/SG."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nearcast.crowdstore.storage import Manner
from nearcast.transition.registry import DURATION

Count = Annotated[int, Meta(ge=0, le=1_000)]


class Parameters(Manner, frozen=True, kw_only=True):
    """Their names, bounds and defaults."""

    hesitation: Annotated[
        float, Meta(ge=0, le=10, extra=DURATION, description="a host waits up to so long before it sends a flood on")
    ] = 0.1
    batch: Annotated[
        int, Meta(ge=1, le=1_000_000, description="of so many objects of its past each host tells a new subscription")
    ] = 100
    timeout: Annotated[
        float,
        Meta(gt=0, le=600, extra=DURATION, description="a download that makes no progress for so long is retried"),
    ] = 2.0
    retries: Annotated[Count, Meta(description="so often in a row; then it fails")] = 4
    answers: Annotated[
        float, Meta(gt=0, le=1_000, description="so many neighbours answer a host that joins, on average")
    ] = 3.0
    join_delay: Annotated[float, Meta(ge=0, le=60, extra=DURATION, description="each of them within so long")] = 0.5
    join_timeout: Annotated[
        float, Meta(gt=0, le=600, extra=DURATION, description="a host asks again if nobody has answered for so long")
    ] = 2.0
    join_retries: Annotated[Count, Meta(description="so often; then it takes itself to be alone")] = 3
    remembered: Annotated[
        float,
        Meta(gt=0, le=1e7, extra=DURATION, description="for so long hosts know of a subscription that it has ended"),
    ] = 600.0
    route_period: Annotated[
        float, Meta(gt=0, le=3_600, extra=DURATION, description="hosts tell all their routes to neighbours so often")
    ] = 15.0
    route_settling: Annotated[
        float,
        Meta(
            ge=0,
            le=600,
            extra=DURATION,
            description="a longer or shorter route is told, before its turn, after so long",
        ),
    ] = 5.0
    route_hold: Annotated[
        float,
        Meta(ge=1, le=100, description="a neighbour, or a route, that was not heard of for so many periods is lost"),
    ] = 3.0
    route_gathering: Annotated[
        float,
        Meta(
            ge=0,
            le=60,
            extra=DURATION,
            description="a host waits up to so long with what is to be told before its turn",
        ),
    ] = 1.0
    route_renewals: Annotated[
        bool, Meta(description="that a route is known anew is told before its turn, as a change is")
    ] = False
