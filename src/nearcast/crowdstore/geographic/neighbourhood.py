"""Where this host and those around it are, and whom that concerns: looks at the sensor, beacons, cells that fill and empty (THYME 5.8.1, 5.8.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nearcast.crowdstore.geographic.grid import Cell, CellGrid, rank
from nearcast.crowdstore.geographic.interface import Passenger
from nearcast.crowdstore.geographic.messages import Beacon
from nearcast.crowdstore.geographic.presence import Presence, Surroundings, Whereabouts
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address, Cancellable, Fix


class Neighbourhood:
    """As one host sees it; ``say`` broadcasts a beacon."""

    def __init__(
        self, host: Host, address: Address, grid: CellGrid, passenger: Passenger, presence: Presence,
        say: Callable[[Beacon], None],
    ) -> None:  # fmt: skip
        self._host: Final = host
        self._address: Final = address
        self._grid: Final = grid
        self._passenger: Final = passenger
        self._presence: Final = presence
        self._say: Final = say
        self._random: Final = host.random("cell router")
        self._looking: Cancellable | None = None
        self._beacon_timer: Cancellable | None = None
        self.around: Final = Surroundings(grid, host.now, presence.beacon)
        self.here = Whereabouts(grid, presence.settle)
        self.cells: tuple[Cell, ...] = ()
        """Around the cell that this host is in, populated or not."""

        self.skip: Final = presence.skip
        self._expired = host.now()

    def start(self) -> None:
        if self._host.sensor is not None:
            self._looking = self._host.sensor.request(self._presence.look, self._look)
        self._arm()

    def stop(self) -> None:
        for timer in (self._looking, self._beacon_timer):
            if timer is not None:
                timer.cancel()
        self._looking = self._beacon_timer = None
        self.around.clear()
        self.here = Whereabouts(self._grid, self._presence.settle)
        self.cells = ()

    @property
    def cell(self) -> Cell | None:
        return self.here.place if self.here.member else None

    def members(self) -> tuple[Address, ...]:
        cell = self.cell
        return () if cell is None else tuple(sorted(self.around.by_cell.get(cell, ())))

    def leader(self) -> Address | None:
        cell = self.cell
        return None if cell is None else min((self._address, *self.around.by_cell.get(cell, ())))

    def heard(self) -> tuple[Cell, ...]:
        own = self.cell
        if own is None:
            return ()
        return tuple(sorted((cell for cell in self.around.by_cell if cell != own), key=lambda cell: rank(cell, own)))

    def nearest(self, cell: Cell) -> bool:
        own = self.cell
        return own is not None and all(
            rank(own, cell) < rank(each, cell) for each in self.around.by_cell if each != own
        )

    def _look(self, fix: Fix) -> None:
        before = self.cell
        if not self.here.look(fix, self._host.now()):
            return
        place = self.here.place
        self.cells = () if place is None else self._grid.neighbours(place)
        after = self.cell
        if before is not None and after is None:
            self._passenger.unsettled(before)
        elif after is not None:
            self._passenger.settled(after)
        if before != after:
            self._say_beacon()  # at once: others stop, or begin, to send through it

    def _arm(self) -> None:
        pause = self._presence.beacon * (0.75 + 0.5 * self._random.random())
        self._beacon_timer = self._host.timers.after(pause, self._say_beacon)

    def spoken(self) -> None:
        """This host has told its cell something: all who are near heard that it is there, and its next beacon can wait (GPSR, 2.1)."""
        if self._beacon_timer is not None:
            self._beacon_timer.cancel()
            self._arm()
            self._expire()

    def _say_beacon(self) -> None:
        if self._beacon_timer is not None:
            self._beacon_timer.cancel()
        self._arm()
        self._expire()
        place = self.here.place
        if place is not None:
            self._say(Beacon(2 * self._grid.number(place) + (not self.here.member)))

    def _expire(self) -> None:
        """Now and then."""
        now, period = self._host.now(), self._presence.beacon * MICROSECONDS
        if now - self._expired < period / 2:
            return
        self._expired = now
        for name, cell in self.around.expire(now - round(self._presence.missed * period)):
            self._left(name, cell)

    def hear(self, sender: Address, place: int) -> None:
        """A beacon."""
        changed = self.around.beacon(sender, place)
        if changed is None:
            return
        left, joined = changed
        self._left(sender, left)
        if joined is None or self.cell is None:
            return
        if joined == self.cell:
            self._passenger.member_joined(sender)
        elif joined in self.cells and len(self.around.by_cell[joined]) == 1:
            self._passenger.populated(joined)

    def _left(self, name: Address, cell: Cell | None) -> None:
        if cell is None or self.cell is None:
            return
        if cell == self.cell:
            self._passenger.member_left(name)
        elif cell in self.cells and cell not in self.around.by_cell:
            self._passenger.emptied(cell)
