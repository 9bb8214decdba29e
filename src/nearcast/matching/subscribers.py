"""Clients and their subscriptions, in columns, with the grid in which they stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel
from nearcast.errors import UnknownName
from nearcast.matching.columns import AROUND_CLIENT, FIXED, PRESENCE_LEVEL, Filters, Subscribers
from nearcast.matching.grid import (
    FILTER_BITS,
    OK,
    ROW,
    START,
    Floats,
    Grid,
    Int32s,
    insert,
    move,
    new_grid,
    remove,
    to_x,
    to_y,
    units_of,
    with_room,
)
from nearcast.matching.growing import grown
from nearcast.matching.vector import prefetch
from nearcast.model.geometry import Point

NONE: Final = -1
_AHEAD: Final = 18
"""So many clients before their turn memory is asked for them."""

PRESENCE_UNITS: Final = (2 << PRESENCE_LEVEL) // 3
"""The largest radius that lives on this level."""
PRESENCE_TAG: Final = FILTER_BITS + 1
"""A flag: in the grid of positions, clients are the items."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the columns keep of one subscription."""

    template: int
    tag: int
    kind: int
    radius: float
    since: int
    until: int
    center: Point | None
    """Where a fixed area lies."""


@inlined
def holder_of(item: int, client: int, tag: int) -> int:
    """What an entry of the grid names: see ``grid``."""
    return item if tag > FILTER_BITS else client


@kernel
def place_clients(
    grid: Grid, where: Int32s, s: Subscribers, numbers: Int32s, lat: Floats, lon: Floats, first: int, last: int
) -> tuple[int, int]:
    """Put the clients ``numbers[first:last]`` at new positions, with all areas that move with them.

    Returns (status, next): where the grid has no room, ``next`` is the client to go on with.
    """
    for i in range(first, last):
        _call_for(grid, where, s, numbers, i)
        client = numbers[i]
        x, y = to_x(lon[i]), to_y(lat[i])
        item = s.first[client]
        while item >= 0:
            if s.kind[item] == AROUND_CLIENT:
                tag, units = s.tag[item], units_of(s.radius[item])
                if where[item, 0] >= 0:
                    status = move(grid, where, s.first, s.next_of_client, item, x, y, units)
                else:
                    status = insert(grid, where, item, holder_of(item, client, tag), x, y, units, tag)
                if status != OK:
                    return status, i
            item = s.next_of_client[item]
        s.lat[client] = lat[i]
        s.lon[client] = lon[i]
    return OK, last


@inlined
def _call_for(grid: Grid, where: Int32s, s: Subscribers, numbers: Int32s, i: int) -> None:
    """Let come what the clients after the i-th one need.

    Each access needs what the one before it finds: a client its first item, the item its row of the table, that its bucket.  So
    the next ones are met several times, each time one access further; when it is their turn, all of it is near.
    """
    if i + _AHEAD >= len(numbers):
        return
    client = numbers[i + _AHEAD]
    prefetch(s.first, client)
    prefetch(s.lat, client)
    prefetch(s.lon, client)
    item = s.first[numbers[i + _AHEAD * 2 // 3]]
    if item >= 0:
        prefetch(where, 2 * item)
        prefetch(s.kind, item)
        prefetch(s.tag, item)
        prefetch(s.radius, item)
        prefetch(s.next_of_client, item)
    item = s.first[numbers[i + _AHEAD // 3]]
    if item >= 0 and where[item, 0] >= 0:
        prefetch(grid.table, ROW * where[item, 0])
    item = s.first[numbers[i + _AHEAD // 6]]
    if item >= 0 and where[item, 0] >= 0:
        prefetch(grid.pool, grid.table[where[item, 0], START] + where[item, 1])


@kernel
def place_items(grid: Grid, where: Int32s, s: Subscribers, items: Int32s, first: int) -> tuple[int, int]:
    """Put new subscriptions around the positions of their clients, where these are known."""
    for i in range(first, len(items)):
        item = items[i]
        client = s.client[item]
        if s.kind[item] == AROUND_CLIENT and not np.isnan(s.lat[client]):
            x, y = to_x(s.lon[client]), to_y(s.lat[client])
            tag, units = s.tag[item], units_of(s.radius[item])
            status = insert(grid, where, item, holder_of(item, client, tag), x, y, units, tag)
            if status != OK:
                return status, i
    return OK, len(items)


@kernel
def place_presence(grid: Grid, where: Int32s, numbers: Int32s, lat: Floats, lon: Floats, first: int) -> tuple[int, int]:
    """Put clients themselves into the grid of positions."""
    for i in range(first, len(numbers)):
        client = numbers[i]
        x, y = to_x(lon[i]), to_y(lat[i])
        if where[client, 0] >= 0:
            status = move(grid, where, numbers, numbers, client, x, y, PRESENCE_UNITS)  # no chains are needed
        else:
            status = insert(grid, where, client, client, x, y, PRESENCE_UNITS, PRESENCE_TAG)
        if status != OK:
            return status, i
    return OK, len(numbers)


@kernel
def chain_items(s: Subscribers, filters: Filters, items: Int32s, number: int) -> None:
    """Hang subscriptions on their clients and on the chain of their filter."""
    heads = filters.first
    for item in items:
        client = s.client[item]
        s.next_of_client[item] = s.first[client]
        s.first[client] = item
        s.previous_of_filter[item] = -1
        s.next_of_filter[item] = heads[number]
        if heads[number] >= 0:
            s.previous_of_filter[heads[number]] = item
        heads[number] = item


@kernel
def unchain_item(s: Subscribers, item: int) -> None:
    """Take a subscription out of the chain of its client."""
    client = s.client[item]
    if s.first[client] == item:
        s.first[client] = s.next_of_client[item]
        return
    other = s.first[client]
    while s.next_of_client[other] != item:
        other = s.next_of_client[other]
    s.next_of_client[other] = s.next_of_client[item]


class SubscriberTable:
    """Columns of clients and subscriptions.  Numbers of what has gone are given to what comes."""

    def __init__(self) -> None:
        self.ids: list[str | None] = []
        self.numbers: dict[str, int] = {}
        self.grid = new_grid()
        self.where = np.full((16, 2), NONE, np.int32)
        self.presence: Grid | None = None
        self.presence_where = np.full((16, 2), NONE, np.int32)
        self.template = np.full(16, NONE, np.int32)
        self._free_clients: list[int] = []
        self._free_items: list[int] = []
        self._items = 0
        self.columns = Subscribers(
            lat=np.full(16, np.nan),
            lon=np.full(16, np.nan),
            first=np.full(16, NONE, np.int32),
            client=np.full(16, NONE, np.int32),
            next_of_client=np.full(16, NONE, np.int32),
            next_of_filter=np.full(16, NONE, np.int32),
            previous_of_filter=np.full(16, NONE, np.int32),
            tag=np.zeros(16, np.int32),
            kind=np.zeros(16, np.uint8),
            radius=np.zeros(16),
            since=np.zeros(16, np.int64),
            until=np.zeros(16, np.int64),
        )

    # Clients

    @property
    def clients(self) -> int:
        return len(self.numbers)

    @property
    def subscriptions(self) -> int:
        return self._items - len(self._free_items)

    def number(self, client: str) -> int:
        number = self.numbers.get(client)
        if number is None:
            raise UnknownName(f"no client {client!r} is known here")
        return number

    def are_known(self, numbers: npt.NDArray[Any]) -> bool:
        """Whether all these are numbers of clients."""
        if not len(numbers):
            return True
        if not (numbers.min() >= 0 and numbers.max() < len(self.ids)):
            return False
        return not self._free_clients or not np.isin(numbers, self._free_clients).any()

    def add_clients(self, ids: Sequence[str]) -> Int32s:
        """Numbers for clients that are all new."""
        numbers = [self._free_clients.pop() for _ in range(min(len(ids), len(self._free_clients)))]
        numbers.extend(range(len(self.ids), len(self.ids) + len(ids) - len(numbers)))
        self.ids.extend([None] * (max(numbers, default=-1) + 1 - len(self.ids)))
        for client, number in zip(ids, numbers, strict=True):
            self.ids[number] = client
            self.numbers[client] = number
        c, size = self.columns, len(self.ids)
        self.columns = c._replace(lat=grown(c.lat, size), lon=grown(c.lon, size), first=grown(c.first, size))
        if self.presence is not None:
            self.presence_where = grown(self.presence_where, size, NONE)
        result = np.array(numbers, np.int32)
        self.columns.lat[result] = self.columns.lon[result] = np.nan
        self.columns.first[result] = NONE
        return result

    def remove_client(self, number: int) -> None:
        """Forget a client that holds no subscription any more."""
        self.forget_position(number)
        client = self.ids[number]
        assert client is not None
        assert self.columns.first[number] == NONE
        del self.numbers[client]
        self.ids[number] = None
        self._free_clients.append(number)

    def position(self, number: int) -> Point | None:
        lat = float(self.columns.lat[number])
        return None if math.isnan(lat) else Point(lat, float(self.columns.lon[number]))

    def move(self, numbers: Int32s, lat: Floats, lon: Floats) -> None:
        self._until_done(
            lambda first: place_clients(self.grid, self.where, self.columns, numbers, lat, lon, first, len(numbers))
        )
        if self.presence is not None:
            self._until_present(numbers, lat, lon)

    def forget_position(self, number: int) -> None:
        for item in self.items_of(number):
            if self.columns.kind[item] == AROUND_CLIENT and self.where[item, 0] >= 0:
                self._take_out(item)
        if self.presence is not None and self.presence_where[number, 0] >= 0:
            none = self.columns.first  # positions need no chains
            remove(self.presence, self.presence_where, none, none, number)
        self.columns.lat[number] = self.columns.lon[number] = np.nan

    def with_presence(self) -> Grid:
        """The grid of the clients' own positions; kept from the first time that it is asked for."""
        if self.presence is None:
            self.presence = new_grid()
            self.presence_where = np.full((max(16, len(self.ids)), 2), NONE, np.int32)
            known = np.flatnonzero(~np.isnan(self.columns.lat[: len(self.ids)])).astype(np.int32)
            self._until_present(known, self.columns.lat[known], self.columns.lon[known])
        return self.presence

    # Subscriptions

    def items_of(self, number: int) -> Iterator[int]:
        item = int(self.columns.first[number])
        while item >= 0:
            following = int(self.columns.next_of_client[item])
            yield item
            item = following

    def add_items(self, numbers: Int32s, row: Row, filters: Filters, filter_number: int) -> Int32s:
        """One and the same subscription for each of the clients ``numbers``."""
        count = len(numbers)
        reused = min(count, len(self._free_items))
        items = np.array(
            [self._free_items.pop() for _ in range(reused)] + list(range(self._items, self._items + count - reused)),
            np.int32,
        )
        self._items += count - reused
        self._make_room(self._items)
        c = self.columns
        c.client[items] = numbers
        c.tag[items] = row.tag
        c.kind[items] = row.kind
        c.radius[items] = row.radius
        c.since[items] = row.since
        c.until[items] = row.until
        self.template[items] = row.template
        self.where[items] = NONE
        chain_items(c, filters, items, filter_number)
        if row.kind == FIXED:
            assert row.center is not None
            self._place_fixed(items, row, row.center)
        else:
            self._until_done(lambda first: place_items(self.grid, self.where, self.columns, items, first))
        return items

    def remove_item(self, item: int, filters: Filters, filter_number: int) -> None:
        c = self.columns
        if self.where[item, 0] >= 0:
            self._take_out(item)
        before, after = int(c.previous_of_filter[item]), int(c.next_of_filter[item])
        if before >= 0:
            c.next_of_filter[before] = after
        else:
            filters.first[filter_number] = after
        if after >= 0:
            c.previous_of_filter[after] = before
        unchain_item(c, item)
        c.client[item] = NONE
        self._free_items.append(item)

    def _place_fixed(self, items: Int32s, row: Row, center: Point) -> None:
        for item in items:
            while True:
                status = insert(
                    self.grid,
                    self.where,
                    int(item),
                    holder_of(int(item), int(self.columns.client[item]), row.tag),
                    to_x(center.lon),
                    to_y(center.lat),
                    units_of(row.radius),
                    row.tag,
                )
                if status == OK:
                    break
                self._grow(status)

    def _take_out(self, item: int) -> None:
        remove(self.grid, self.where, self.columns.first, self.columns.next_of_client, item)

    def _grow(self, status: int) -> None:
        self.grid = with_room(self.grid, self.where, self.columns.first, self.columns.next_of_client, status)

    def _make_room(self, size: int) -> None:
        c = self.columns
        if size <= len(c.client):
            return
        self.columns = c._replace(
            client=grown(c.client, size),
            next_of_client=grown(c.next_of_client, size),
            next_of_filter=grown(c.next_of_filter, size),
            previous_of_filter=grown(c.previous_of_filter, size),
            tag=grown(c.tag, size),
            kind=grown(c.kind, size),
            radius=grown(c.radius, size),
            since=grown(c.since, size),
            until=grown(c.until, size),
        )
        self.where = grown(self.where, size)
        self.template = grown(self.template, size)

    def _until_done(self, attempt: Callable[[int], tuple[int, int]]) -> None:
        status, following = attempt(0)
        while status != OK:
            self._grow(status)
            status, following = attempt(following)

    def _until_present(self, numbers: Int32s, lat: Floats, lon: Floats) -> None:
        assert self.presence is not None
        status, following = place_presence(self.presence, self.presence_where, numbers, lat, lon, 0)
        while status != OK:
            self.presence = with_room(self.presence, self.presence_where, numbers, numbers, status)
            status, following = place_presence(self.presence, self.presence_where, numbers, lat, lon, following)
