"""Who may plan, and what: plans are taken only with the signature of a planner that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from nearcast.broker.schemes.settings import PlannerSettings
from nearcast.broker.schemes.text import scheme_in
from nearcast.errors import Denied, InvalidPlan
from nearcast.model.area import Area, Circle
from nearcast.model.containment import surely_within
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.planning.signed import public_key, verify

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from nearcast.broker.schemes.plans import Planned

SKEW: Final = 60 * MICROSECONDS
"""By so much a planner's clock may be ahead."""

LONGEST: Final = 24 * 3600 * MICROSECONDS
"""For so long a plan may be valid."""


@dataclass(frozen=True, slots=True)
class PlannersStatistics:
    planners: int
    refused: int


class _Planner:
    def __init__(self, settings: PlannerSettings) -> None:
        self.settings: Final = settings
        self.key: Final[Ed25519PublicKey] = public_key(settings.key)
        self.within: Final[Area | None] = settings.area()
        self.kinds: Final = frozenset(settings.schemes)

    def objections(self, planned: Planned) -> Iterator[str]:
        for scheme in (planned.scheme, planned.elsewhere):
            if scheme is not None and self.kinds and scheme_in(scheme).name not in self.kinds:
                yield f"it may not plan {scheme} (schemes)"
        if planned.gateways is not None and not self.settings.gateways:
            yield "it may not switch gateways (gateways)"
        if self.within is not None:
            if planned.regions is None or planned.elsewhere is not None:
                yield "it may plan for regions within its area only, not for everybody, for clients or elsewhere (within)"
            for region in planned.regions or ():
                if not surely_within(self.within, Circle(region.radius, Point(region.lat, region.lon))):
                    yield f"region {region.name!r:.60} is not within its area (within)"


class Planners:
    """Nobody: plans need no signature, and whoever may hand them in is believed."""

    def __init__(self, planners: tuple[PlannerSettings, ...], audience: str, now: Callable[[], Instant]) -> None:
        self._planners: Final = {each.name: _Planner(each) for each in planners}
        self._audience: Final = audience
        self._now: Final = now
        self._refused = 0

    def __bool__(self) -> bool:
        return bool(self._planners)

    def statistics(self) -> PlannersStatistics:
        return PlannersStatistics(len(self._planners), self._refused)

    def check(self, planned: Planned) -> None:
        """``Denied`` unless a planner of the settings has signed it, and may plan all of it."""
        if not self._planners:
            return
        try:
            self._check(planned)
        except (InvalidPlan, Denied) as error:
            self._refused += 1
            raise Denied(f"plan {planned.plan!r:.60}: {error}") from None

    def _check(self, planned: Planned) -> None:
        signature = planned.signature
        if signature is None:
            raise Denied("it is not signed, and this broker has planners; sign it with a planner's key")
        planner = self._planners.get(signature.planner)
        if planner is None:
            raise Denied(f"there is no planner {signature.planner!r:.60} here")
        said: dict[str, Any] = msgspec.to_builtins(planned)
        del said["signature"]
        verify(planner.key, said, signature)
        now = self._now()
        if signature.audience != self._audience:
            raise Denied("it is for another broker (schemes.audience)")
        if signature.expires <= now:
            raise Denied("it has expired; plan anew")
        if signature.issued > now + SKEW:
            raise Denied("it was made in the future; look at the planner's clock")
        if signature.expires - signature.issued > LONGEST:
            raise Denied("it is valid for more than a day; plan for less")
        for objection in planner.objections(planned):
            raise Denied(f"planner {signature.planner!r:.60}: {objection}")
