"""Filter schemes by name and parameters: what a scenario, a plan or a person asks for, and the halves made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec

from nearcast.errors import InvalidScheme
from nearcast.filtering.attract import AttractBroker, AttractClient, Channels
from nearcast.filtering.attraction import Zones
from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.channels import UnknownChannels
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.envelope import ANGLE
from nearcast.filtering.grid import Cells, GridBroker, GridClient, PrivateGridClient
from nearcast.filtering.hexagons import COARSEST, FINEST, HexagonGrid
from nearcast.filtering.multi import MultiBroker, MultiClient
from nearcast.filtering.policies import Distance, EveryFix, Frequency, Hybrid, UpdatePolicy
from nearcast.filtering.radial import RadialBroker, RadialClient
from nearcast.filtering.ste import SteBroker, SteClient
from nearcast.filtering.tessellation import Cover, GeoBox, SquareGrid, Tessellation
from nearcast.transition.specification import MechanismSpec, Scalar

Metres = Annotated[float, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Territory:
    """The ground that schemes cut into channels; both halves know it."""

    box: GeoBox
    zones: Zones
    unknown_channels: UnknownChannels = "place"


class Scheme(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a scheme.  The classes below say which there are, their defaults and bounds."""

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        raise NotImplementedError

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        raise NotImplementedError


class Radial(Scheme, frozen=True, kw_only=True):
    update: Literal["fix", "distance", "frequency", "hybrid"] = "fix"
    """When the position is reported: with every fix, as the prototype does, or by a policy (BYPASS.KOM 4.2.2)."""

    # The document gives no thresholds; these are near what a pedestrian covers between two fixes.
    distance: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    seconds: Annotated[float, msgspec.Meta(gt=0)] = 15.0

    def broker_half(self, _territory: Territory, cloud: Cloud) -> BrokerHalf:
        return RadialBroker(cloud)

    def client_half(self, _territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return RadialClient(surroundings, self.policy())

    def policy(self) -> UpdatePolicy:
        match self.update:
            case "fix":
                return EveryFix()
            case "distance":
                return Distance(self.distance)
            case "frequency":
                return Frequency(self.seconds)
            case "hybrid":
                return Hybrid(self.distance, self.seconds)


class Ste(Radial, frozen=True, kw_only=True):
    alpha: Annotated[float, msgspec.Meta(ge=0)] = 1.5
    """Minutes of travel that the envelope reaches ahead: 1.5 in the evaluation (A.1), though 4.2.4 says 1."""

    angle: Annotated[float, msgspec.Meta(ge=0, lt=90)] = ANGLE

    def broker_half(self, _territory: Territory, cloud: Cloud) -> BrokerHalf:
        return SteBroker(cloud, self.alpha, self.angle)

    def client_half(self, _territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return SteClient(surroundings, self.policy())


class Grid(Scheme, frozen=True, kw_only=True):
    cells: Literal["square", "hexagon"] = "square"
    # Beyond, a client's area of interest holds so many cells that it would be cheaper to know its position.
    factor: Annotated[int, msgspec.Meta(ge=1, le=500)] = 5
    """Squares: so many rows and columns."""

    resolution: Annotated[int, msgspec.Meta(ge=COARSEST, le=FINEST)] = 9
    """Hexagons: H3's; 9 has edges of about 200 m."""

    remember_location: bool = True
    """Whether the broker keeps the position by which it assigned cells (BYPASS.KOM) or forgets it (LCN 2016)."""

    private: bool = False
    """Whether the client chooses its cells itself, so that the broker never learns more."""

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        return GridBroker(
            cloud, self._cells(territory), territory.unknown_channels, remember_location=self.remember_location
        )

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        half = PrivateGridClient if self.private else GridClient
        return half(surroundings, self._cells(territory))

    def tessellation(self, territory: Territory) -> Tessellation:
        if self.cells == "square":
            return SquareGrid(territory.box, self.factor)
        return HexagonGrid(territory.box, self.resolution)

    def _cells(self, territory: Territory) -> Cells:
        return Cells(self.tessellation(territory), None)


class Egrid(Grid, frozen=True, kw_only=True):
    cover: Cover = "box"
    margin: Metres = 0.0

    def _cells(self, territory: Territory) -> Cells:
        return Cells(self.tessellation(territory), self.cover, self.margin)


class Attract(Scheme, frozen=True, kw_only=True):
    extension: Metres = 0.0
    """From so many metres around its point a channel takes events in: the largest radius of interest closes the ring of missed
    events around a point (BYPASS.KOM 6.2.4; 6.4.2 says the average, which is the same where all radii are equal)."""

    catch_all: bool = True
    enable_updates: bool = False

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        return AttractBroker(cloud, self._channels(territory), territory.unknown_channels)

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return AttractClient(surroundings, self._channels(territory), enable_updates=self.enable_updates)

    def _channels(self, territory: Territory) -> Channels:
        return Channels(territory.zones, catch_all=self.catch_all, extension=self.extension)


class Multi(Radial, frozen=True, kw_only=True):
    extension: Metres = 0.0
    enable_updates: bool = False

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        return MultiBroker(cloud, self._channels(territory), territory.unknown_channels)

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return MultiClient(surroundings, self._channels(territory), self.policy(), enable_updates=self.enable_updates)

    def _channels(self, territory: Territory) -> Channels:
        return Channels(territory.zones, catch_all=False, extension=self.extension)


SCHEMES: Final[dict[str, tuple[type[Scheme], dict[str, Scalar]]]] = {
    "RADIAL": (Radial, {}),
    "LPS": (Radial, {}),
    "STE": (Ste, {}),
    "GRID": (Grid, {}),
    "EGRID": (Egrid, {}),
    "RGRID": (Egrid, {"cover": "circle", "remember_location": False}),
    "ATTRACT": (Attract, {}),
    "MULTI": (Multi, {}),
}
"""By name; LPS and RGRID are the LCN paper's names for parameters of others."""


def scheme_of(spec: MechanismSpec) -> Scheme:
    """The parameters that a specification stands for."""
    try:
        kind, preset = SCHEMES[spec.name]
    except KeyError:
        raise InvalidScheme(f"there is no filter scheme {spec.name!r}; there are {', '.join(SCHEMES)}") from None
    try:
        return msgspec.convert(preset | dict(spec.parameters), kind)
    except msgspec.ValidationError as error:
        has = ", ".join(kind.__struct_fields__)
        raise InvalidScheme(f"filter scheme {spec.name}: {error}; its parameters are {has}") from None


def broker_halves(territory: Territory, cloud: Cloud) -> Callable[[MechanismSpec], BrokerHalf]:
    return lambda spec: scheme_of(spec).broker_half(territory, cloud)


def client_halves(territory: Territory, surroundings: Surroundings) -> Callable[[MechanismSpec], ClientHalf]:
    return lambda spec: scheme_of(spec).client_half(territory, surroundings)
