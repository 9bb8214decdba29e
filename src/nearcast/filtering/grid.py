"""GRID and EGRID: the world is cut into cells, each a channel (BYPASS.KOM 4.2.4; LCN 2016, III-C).

GRID: a client belongs to the cell that it is in, whatever its area of interest.  EGRID: to all cells that its area of interest, or
the box around it, meets; the LCN paper's RGRID is that with circles, and a broker that forgets positions at once.

A client may keep its position to itself and choose its cells on its own (``private``): then the broker learns the cells and
nothing else, and events that happen where the client is happen in the middle of its cell.
"""

from __future__ import annotations

from typing import Final

from nearcast.filtering.broker_half import Cloud
from nearcast.filtering.channels import Assigned, ChannelBroker, ChannelClient, UnknownChannels
from nearcast.filtering.client_half import Surroundings
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import FromClient, Joining, ToClient
from nearcast.filtering.tessellation import Cover, Tessellation
from nearcast.model.geometry import Point, distance
from nearcast.runtime.ports import Fix


class Cells:
    """Which cells a client belongs to: the rule that both halves share."""

    def __init__(self, tessellation: Tessellation, cover: Cover | None, margin: float = 0.0) -> None:
        """``cover`` none: only the cell that the client is in.

        ``margin`` metres are added to the radius.  Fixes are old when they are used: with v_max (interval + round trip) no event is
        missed that happens in the area of interest of a client that has walked on since.
        """
        self.tessellation: Final = tessellation
        self.several: Final = cover is not None
        """Whether a client may belong to more than the cell that it is in."""

        self._cover: Final = cover
        self._margin: Final = margin

    def of(self, position: Point, radius: float) -> tuple[str, ...]:
        if self._cover is None:
            return (self.tessellation.cell_of(position),)
        return self.tessellation.around(position, radius + self._margin, self._cover)

    def of_cell(self, cell: str, radius: float) -> tuple[str, ...]:
        """All that a client may need wherever it is in that cell.

        Those that its area of interest meets would give away how far it is from each border: the broker knows the radius.  Of a client
        in one cell of 260 m, with a radius of 125 m and no other cell, it would know the place within 10 m.
        """
        if self._cover is None:
            return (cell,)
        middle, (south, west, north, east) = self.tessellation.center(cell), self.tessellation.bounds(cell)
        farthest = max(distance(middle, Point(lat, lon)) for lat in (south, north) for lon in (west, east))
        return self.tessellation.around(middle, farthest + radius + self._margin, self._cover)

    def suffice(self, cells: frozenset[str], position: Point, radius: float) -> bool:
        """Whether a client in those cells, and perhaps more, need not ask for others.

        Not only its own cell counts: it asks as soon as its area of interest leaves the assigned cells (digest of BYPASS.KOM, 11).
        """
        if self._cover is None:
            return self.tessellation.cell_of(position) in cells
        return self.tessellation.covers(cells, position, radius + self._margin, self._cover)


class GridBroker(ChannelBroker):
    """Clients by cell."""

    def __init__(
        self, cloud: Cloud, cells: Cells, unknown_channels: UnknownChannels = "place", *, remember_location: bool = True
    ) -> None:
        super().__init__(cloud, unknown_channels, remember_location=remember_location)
        self._cells: Final = cells

    @property
    def channel_count(self) -> int:
        return self._cells.tessellation.cells

    def _assign(self, position: Point, radius: float) -> Assigned:
        return Assigned(self._cells.of(position, radius), self._cells.tessellation.cell_of(position))

    def _kept(self, context: ClientContext) -> Assigned:
        channels, own = super()._kept(context)
        return Assigned(channels if own is None or self._cells.several else (own,), own)

    def _channels_at(self, place: Point) -> tuple[str, ...]:
        return (self._cells.tessellation.cell_of(place),)

    def _is_known(self, channel: str) -> bool:
        return channel in self._cells.tessellation


class GridClient(ChannelClient):
    """Asks the broker for other cells as soon as those it has do not suffice."""

    def __init__(self, surroundings: Surroundings, cells: Cells) -> None:
        super().__init__(surroundings)
        self._cells: Final = cells

    def _stays(self, fix: Fix) -> bool:
        return self._cells.suffice(frozenset(self.assigned), fix.position, self._surroundings.radius()) and (
            # Its own channel is the cell that it is in, also while the assigned cells suffice: else what it publishes at a
            # border would be looked up in the neighbouring cell, and EGRID would not have recall 1.
            self.own is None or self._cells.tessellation.contains(self.own, fix.position)
        )


class PrivateGridClient(GridClient):
    """Chooses its cells itself, and says only these."""

    def moved(self, fix: Fix) -> None:
        joining = self._join(fix)
        if joining.channels != self.assigned:  # as long as the broker has not confirmed it, it is said again
            self._surroundings.say(joining)

    def piggyback(self) -> FromClient | None:
        fix = self._surroundings.newest()
        return None if fix is None else self._join(fix)

    def receive(self, message: ToClient) -> None:
        # Nothing is assigned to whoever chooses for itself, only confirmed: to ask for something else would give the position away.
        if message.measured >= self._assigned_by:
            self._assigned_by, self.assigned = message.measured, message.channels

    def place(self, here: Point) -> Point:
        tessellation = self._cells.tessellation
        return tessellation.center(tessellation.cell_of(here))

    def _join(self, fix: Fix) -> Joining:
        self.own = self._cells.tessellation.cell_of(fix.position)
        return Joining(fix.time, self._cells.of_cell(self.own, self._surroundings.radius()))
