"""The queue of a station: frames in the order in which they were handed in, the first of them being worked on."""

from __future__ import annotations

from typing import Final

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.radio.access import request
from nearcast.runtime.simulation.radio.layout import (
    COMPLETED,
    COMPLETIONS,
    GRANTED,
    HANDED_IN,
    NONE,
    NOT_REQUESTED,
    QUEUE_FULL,
    STATION_OFF,
    UNREAD,
    Int64s,
    Records,
    World,
    report,
)
from nearcast.runtime.simulation.radio.reports import Acceptance, Outcome

ACCEPTED: Final = int(Acceptance.ACCEPTED)
QUEUED: Final = int(Acceptance.QUEUED)
DROPPED: Final = int(Acceptance.DROPPED)
EXPIRED: Final = int(Outcome.EXPIRED)


@inlined
def enqueue(
    world: World,
    node: int,
    to: int,
    size: int,
    airtime: int,
    key: int,
    copy: int,
    group: int,
    door: int,
    counted_only: int,
    now: int,
) -> int:
    """Take a frame of ``size`` bytes on air, or drop it, as Acceptance says."""
    station = world.nodes[node]
    control = world.control[0]
    world.counters[node, HANDED_IN] += 1
    if station.on == 0:
        world.counters[node, STATION_OFF] += 1
        return DROPPED
    limit = world.parameters[0].queue_frames
    if station.queued >= limit and station.access != GRANTED:
        drop_expired(world, node, now)
    if station.queued >= limit:
        world.counters[node, QUEUE_FULL] += 1
        return DROPPED
    place = control.free_frame
    frame = world.frames[place]
    control.free_frame = frame.next
    frame.key = key
    frame.created = now
    frame.airtime = airtime
    frame.to = to
    frame.bytes = size
    frame.next = NONE
    frame.counted_only = counted_only
    frame.delivered = 0
    frame.copy = copy
    frame.group = group
    frame.door = door
    frame.unread = 0
    if station.queued == 0:
        station.head = place
    else:
        world.frames[station.tail].next = place
    station.tail = place
    station.queued += 1
    if station.access != NOT_REQUESTED:
        return QUEUED
    request(world, node, now)
    return ACCEPTED


@inlined
def complete(world: World, node: int, outcome: int) -> None:
    """Take the first frame off the queue and say what became of it."""
    world.counters[node, COMPLETED + outcome] += 1
    _dequeue(world.control, world.nodes, world.frames, world.reports, node, outcome)


@kernel
def _dequeue(control: Records, nodes: Records, frames: Records, reports: Int64s, node: int, outcome: int) -> None:
    station = nodes[node]
    place = station.head
    frame = frames[place]
    if frame.counted_only == 0:
        report(control, reports, COMPLETIONS, frame.key, node, outcome | frame.unread << UNREAD)
    station.head = frame.next
    station.queued -= 1
    station.retries = 0
    frame.next = control[0].free_frame
    control[0].free_frame = place


@inlined
def drop_expired(world: World, node: int, now: int) -> None:
    station = world.nodes[node]
    latest = now - world.parameters[0].lifetime
    while station.queued > 0 and world.frames[station.head].created < latest:
        complete(world, node, EXPIRED)
