"""Access to the medium: the distributed coordination function of 802.11, in the reading of ns-3 3.37.

- A frame that meets an idle medium and no backoff is sent a DIFS later; if the medium is busy when the frame comes, a
  backoff is drawn.  A medium that gets busy within that DIFS defers the frame, without a backoff.
- Backoff slots pass while the medium is idle, from a DIFS after it became so (an EIFS after a frame that could not be
  read) and are kept while it is busy.  After every transmission a new backoff begins, with or without a next frame.
- A station notices a signal when its preamble has had the time to be detected (4 µs).  Who starts to send within that
  time, above all in the same slot, collides.
- Propagation takes no time here: at 205 m it would be 0.7 µs.
"""

from __future__ import annotations

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.radio.draws import uniform
from nearcast.runtime.simulation.radio.heap import ACCESS, push
from nearcast.runtime.simulation.radio.layout import NONE, NOT_REQUESTED, REQUESTED, Records, World

# Draws for backoff are told from those for receptions, which are numbered by transmissions, by a negative number.
_BACKOFF = -1


@inlined
def _earliest(world: World, node: int) -> int:
    """When the interframe space after all that occupied the medium is over."""
    station = world.nodes[node]
    return int(max(max(station.quiet_from, station.nav_until) + world.parameters[0].difs, station.eifs_until))


@inlined
def _count_down(world: World, node: int, until: int) -> None:
    """Take off the slots that passed while the medium was idle."""
    station = world.nodes[node]
    if station.slots > 0:
        slot = world.parameters[0].slot
        start = max(station.backoff_from, _earliest(world, node))
        if until > start:
            passed = min(station.slots, (until - start) // slot)
            station.slots -= passed
            station.backoff_from = start + passed * slot


@inlined
def _schedule(world: World, node: int) -> None:
    """Expect access at the end of the backoff.

    At most one event that matters is in the heap per station.  It is left there when access is put off, which is the
    usual case, and moved on when its time comes.
    """
    station = world.nodes[node]
    expiry = max(station.backoff_from, _earliest(world, node)) + station.slots * world.parameters[0].slot
    station.expiry = expiry
    if station.alarm < 0 or expiry < station.alarm:
        station.alarm = expiry
        push(world, expiry, ACCESS, node, 0)


@inlined
def occupied(world: World, node: int, noticed: int) -> None:
    """An idle medium gets busy; the station will have noticed at ``noticed``."""
    station = world.nodes[node]
    if station.access == REQUESTED or station.slots > 0:
        _count_down(world, node, noticed)
        if station.expiry >= noticed:
            station.expiry = NONE


@inlined
def vacated(world: World, node: int, now: int) -> None:
    """A busy medium gets idle."""
    station = world.nodes[node]
    station.quiet_from = max(station.quiet_from, now)
    if station.access == REQUESTED:
        _schedule(world, node)


@inlined
def idle(world: World, node: int) -> bool:
    station = world.nodes[node]
    return bool(station.sensed == 0 and station.sending < 0)


@inlined
def request(world: World, node: int, now: int) -> None:
    """The first frame of the queue has come."""
    station = world.nodes[node]
    parameters = world.parameters[0]
    if idle(world, node):
        _count_down(world, node, now)
    if station.slots == 0:
        noticed = station.sensed == 1 and now >= station.busy_since + parameters.detection
        if noticed or station.sending >= 0 or station.nav_until > now:
            draw_backoff(world, node, now)
        else:
            station.backoff_from = now + parameters.difs
    station.access = REQUESTED
    if idle(world, node):
        _schedule(world, node)


@inlined
def release(world: World, node: int, now: int) -> None:
    """The exchange is over.  The caller knows whether the medium is idle by now, and calls ``resume``."""
    station = world.nodes[node]
    draw_backoff(world, node, now)
    station.access = REQUESTED if station.queued > 0 else NOT_REQUESTED


@inlined
def resume(world: World, node: int) -> None:
    """Something that put off the access may have changed."""
    if world.nodes[node].access == REQUESTED and idle(world, node):
        _schedule(world, node)


@inlined
def draw_backoff(world: World, node: int, now: int) -> None:
    _draw(world.nodes, world.control, node, now)


@kernel
def _draw(nodes: Records, control: Records, node: int, now: int) -> None:
    station = nodes[node]
    station.draws += 1
    chance = uniform(control[0].seed, _BACKOFF - node, station.draws)
    station.slots = int(chance * (station.window + 1))
    station.backoff_from = now


@inlined
def granted(world: World, node: int, now: int) -> bool:
    """Deal with the event of ``_schedule``: is the backoff over?"""
    station = world.nodes[node]
    if station.alarm != now:
        return False
    station.alarm = NONE
    if station.expiry > now:
        station.alarm = station.expiry
        push(world, station.expiry, ACCESS, node, 0)
    return bool(station.expiry == now and station.access == REQUESTED)
