"""A town whose clients also hear each other, and change what they do at attraction points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.dissemination.adhoc.village import RANGE, Meadow
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import Fault, Options, Town

from nearcast.dissemination.adhoc.carrier import LOCAL, AdHoc, AdHocSettings
from nearcast.dissemination.cloud_client import CloudClient
from nearcast.dissemination.hybrid import HybridEvents
from nearcast.planning.coexistence import Coexistence, CoexistenceSettings, Mechanisms
from nearcast.planning.density import DensityRule
from nearcast.runtime.host import Component
from nearcast.runtime.ports import Address
from nearcast.runtime.simulation.network import Network
from nearcast.transition.specification import NULL, MechanismSpec

RADIAL = MechanismSpec("RADIAL")
CLOUD = MechanismSpec("cloud")
FLOODING, PLAN_B = MechanismSpec("FLOODING"), MechanismSpec("PLAN-B")


@dataclass(frozen=True)
class Around:
    """What is done at points."""

    mode: str = "augment"
    extension: float = 60.0
    threshold: float | None = None
    hysteresis: float = 0.0
    healing: bool = False
    otherwise: MechanismSpec | None = None
    options: Options = field(default_factory=Options)

    @property
    def scheme(self) -> MechanismSpec:
        return MechanismSpec.of("ATTRACT", catch_all=False, extension=self.extension)

    def settings(self) -> CoexistenceSettings:
        mode = MechanismSpec(self.mode)
        return CoexistenceSettings(
            inside=self.scheme,
            outside=RADIAL,
            mode_outside=CLOUD,
            crowded=Mechanisms(mode, ((LOCAL, FLOODING),)),
            otherwise=None if self.otherwise is None else Mechanisms(mode, ((LOCAL, self.otherwise),)),
            rule=None if self.threshold is None else DensityRule(self.threshold, self.hysteresis),
            coordination="self-healing" if self.healing else "central",
        )


class CoexistingTown(Town):
    def __init__(self, story: Story, around: Around, faults: Sequence[Fault] = ()) -> None:
        self.around: Final = around
        super().__init__(story, RADIAL, (), around.options, faults=faults)

    def _broker(self) -> list[Component]:
        return [*super()._broker(), Coexistence(self.story.zones(), self.around.settings())]

    def _local_networks(self) -> list[Network]:
        def hears(one: int, other: int) -> bool:
            motion = self.world.motion
            return math.dist(motion.at(one), motion.at(other)) <= RANGE

        return [Meadow(self.simulation, hears, check_wire=True)]

    def _carried(self, cloud: CloudClient) -> list[Component]:
        local = AdHoc(AdHocSettings(NULL, geofence=False, self_healing=self.around.healing))
        return [HybridEvents("cloud", ad_hoc=[local], cloud=[cloud]), cloud, local]

    @property
    def meadow(self) -> Meadow:
        (local,) = self.local
        assert isinstance(local, Meadow)
        return local

    @property
    def coexistence(self) -> Coexistence:
        host = self.world.hosts["broker"].host
        assert host is not None
        return host.component(Coexistence)

    def adhoc(self, name: Address) -> AdHoc:
        host = self.world.hosts[name].host
        assert host is not None
        return host.component(AdHoc)

    def by_radio(self) -> set[str]:
        """Events that somebody sent from host to host."""
        return {event for frame in self.meadow.frames for event, _ in frame.events}

    def by_cloud(self) -> set[str]:
        return set(self.outcome.filtered)
