"""The parameters of the filter schemes of the house, and the halves made from them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from nearcast.filtering.attract import AttractBroker, AttractClient, Channels
from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.envelope import ANGLE
from nearcast.filtering.grid import Cells, GridBroker, GridClient, PrivateGridClient
from nearcast.filtering.hexagons import COARSEST, FINEST, HexagonGrid
from nearcast.filtering.multi import MultiBroker, MultiClient
from nearcast.filtering.policies import Distance, EveryFix, Frequency, Hybrid, UpdatePolicy
from nearcast.filtering.radial import RadialBroker, RadialClient
from nearcast.filtering.scheme import DURATION, LENGTH, Scheme, Territory
from nearcast.filtering.ste import SteBroker, SteClient
from nearcast.filtering.tessellation import Cover, GeoBox, SquareGrid, Tessellation

_FARTHEST: Final = 100_000.0
"""Metres: beyond, somebody meant something else."""

# The largest radius of interest closes the ring of missed events around a point (BYPASS.KOM 6.2.4; 6.4.2 says the average,
# which is the same where all radii are equal).
Extension = Annotated[
    float,
    Meta(ge=0, le=_FARTHEST, extra=LENGTH, description="from how far around its point a channel takes events in"),
]
Updates = Annotated[bool, Meta(description="whether clients report their positions all the same")]


class Radial(Scheme, frozen=True, kw_only=True):
    """The broker knows where everybody is and measures distances."""

    # With every fix, as the prototype does, or by a policy (BYPASS.KOM 4.2.2).
    update: Annotated[
        Literal["fix", "distance", "frequency", "hybrid"],
        Meta(
            description="when a client reports its position: with every fix, after so far, after so long, or after either"
        ),
    ] = "fix"

    # The document gives no thresholds; these are near what a pedestrian covers between two fixes.
    distance: Annotated[
        float,
        Meta(
            gt=0,
            le=_FARTHEST,
            extra=LENGTH,
            description="how far it goes between two reports ('distance', 'hybrid')",
        ),
    ] = 10.0
    seconds: Annotated[
        float,
        Meta(gt=0, extra=DURATION, description="how long it waits between two reports ('frequency', 'hybrid')"),
    ] = 15.0

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
    """RADIAL with areas of interest that reach ahead of those who move."""

    # 1.5 in the evaluation (A.1), though 4.2.4 says 1.
    alpha: Annotated[float, Meta(ge=0, le=1_000, description="how many minutes of travel it reaches ahead")] = 1.5
    angle: Annotated[float, Meta(ge=0, le=60, description="degrees by which it widens on each side")] = ANGLE

    def broker_half(self, _territory: Territory, cloud: Cloud) -> BrokerHalf:
        return SteBroker(cloud, self.alpha, self.angle)

    def client_half(self, _territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return SteClient(surroundings, self.policy())


class Grid(Scheme, frozen=True, kw_only=True):
    """The world is cut into cells; a client gets what happens in its own."""

    cells: Annotated[Literal["square", "hexagon"], Meta(description="their form; hexagons are those of H3")] = "square"
    # Beyond, a client's area of interest holds so many cells that it would be cheaper to know its position.
    factor: Annotated[int, Meta(ge=1, le=500, description="so many rows and columns of squares")] = 5
    resolution: Annotated[int, Meta(ge=COARSEST, le=FINEST, description="of hexagons; 9 has edges of about 200 m")] = 9
    remember_location: Annotated[
        bool,
        Meta(
            description="whether the broker keeps the position by which it assigned cells (BYPASS.KOM) or not (LCN 2016)"
        ),
    ] = True
    private: Annotated[
        bool, Meta(description="whether a client chooses its cells itself and says nothing but these")
    ] = False

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        return GridBroker(
            cloud, self._cells(territory), territory.unknown_channels, remember_location=self.remember_location
        )

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        half = PrivateGridClient if self.private else GridClient
        return half(surroundings, self._cells(territory))

    def tessellation(self, territory: Territory) -> Tessellation:
        return self.tessellation_of(territory.box)

    def tessellation_of(self, box: GeoBox) -> Tessellation:
        if self.cells == "square":
            return SquareGrid(box, self.factor)
        return HexagonGrid(box, self.resolution)

    def _cells(self, territory: Territory) -> Cells:
        return Cells(self.tessellation(territory), None)


class Egrid(Grid, frozen=True, kw_only=True):
    """As GRID, but a client gets what happens in all cells that its area of interest meets."""

    cover: Annotated[Cover, Meta(description="cells that meet the circle of interest, or the box around it")] = "box"
    margin: Annotated[
        float,
        Meta(
            ge=0,
            le=_FARTHEST,
            extra=LENGTH,
            description="added to the radius; with fastest speed x (location interval + round trip) nothing is missed",
        ),
    ] = 0.0

    def _cells(self, territory: Territory) -> Cells:
        return Cells(self.tessellation(territory), self.cover, self.margin)


class Attract(Scheme, frozen=True, kw_only=True):
    """A channel for each attraction point, and one for everywhere else."""

    needs_points: ClassVar[bool] = True

    extension: Extension = 0.0
    catch_all: Annotated[bool, Meta(description="whether there is a channel for everywhere else")] = True
    enable_updates: Updates = False

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        return AttractBroker(cloud, self._channels(territory), territory.unknown_channels)

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return AttractClient(surroundings, self._channels(territory), enable_updates=self.enable_updates)

    def _channels(self, territory: Territory) -> Channels:
        return Channels(territory.zones, catch_all=self.catch_all, extension=self.extension)


class Multi(Radial, frozen=True, kw_only=True):
    """ATTRACT at attraction points, RADIAL everywhere else."""

    needs_points: ClassVar[bool] = True

    extension: Extension = 0.0
    enable_updates: Updates = False

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        return MultiBroker(cloud, self._channels(territory), territory.unknown_channels)

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return MultiClient(surroundings, self._channels(territory), self.policy(), enable_updates=self.enable_updates)

    def _channels(self, territory: Territory) -> Channels:
        return Channels(territory.zones, catch_all=False, extension=self.extension)
