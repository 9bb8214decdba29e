"""Frames from queue to acknowledgement: broadcast, basic access and RTS/CTS (``FrameExchangeManager`` of ns-3 3.37).

One deviation, on purpose: attempts at a frame are counted together, whether the RTS or the data got no answer.  ns-3
counts failed RTS in a place that it does not look at, and repeats them until the frame's lifetime is over.
"""

from __future__ import annotations

from typing import Final

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.radio.access import occupied, release, resume, vacated
from nearcast.runtime.simulation.radio.heap import END, NAV_RESET, RESPONSE, TIMEOUT, push
from nearcast.runtime.simulation.radio.layout import (
    ACK,
    ACK_TABLE,
    BASIC_TABLE,
    BROADCAST,
    BROADCAST_TABLE,
    BYTES_RECEIVED,
    BYTES_SENT,
    CTS,
    DATA,
    DATA_TABLE,
    DELIVERED,
    DELIVERIES,
    DUPLICATES,
    FOR_ACK,
    FOR_CTS,
    GRANTED,
    LISTENING,
    NONE,
    NOT_REQUESTED,
    NOTHING,
    ON_AIR,
    PAYLOAD,
    POTENTIAL,
    RECEIVED,
    RTS,
    World,
    report,
)
from nearcast.runtime.simulation.radio.neighbours import gather
from nearcast.runtime.simulation.radio.profile import ACK_BYTES, CTS_BYTES, RTS_BYTES
from nearcast.runtime.simulation.radio.queueing import complete, drop_expired
from nearcast.runtime.simulation.radio.reception import (
    BUSY_SENDING,
    COLLIDED,
    SWITCHED_OFF,
    arrive,
    fade,
    lose,
    settle,
    survives,
)
from nearcast.runtime.simulation.radio.reports import Outcome

SENT: Final = int(Outcome.SENT)
ACKNOWLEDGED: Final = int(Outcome.ACKNOWLEDGED)
RETRIES_EXHAUSTED: Final = int(Outcome.RETRIES_EXHAUSTED)
OFF: Final = int(Outcome.SWITCHED_OFF)


@kernel
def transmit(world: World, node: int, kind: int, to: int, nav: int, now: int) -> None:
    """Go on air; ``DATA`` is the first frame of the queue."""
    station = world.nodes[node]
    control = world.control[0]
    parameters = world.parameters[0]
    if station.stage != LISTENING:
        station.stage = LISTENING
        lose(world, station.lock, node, BUSY_SENDING)
    if station.sensed == 0:
        occupied(world, node, now)
    station.eifs_until = 0
    slot = control.free_air
    frame = world.air[slot]
    control.free_air = frame.next
    station.sending = slot
    frame.kind = kind
    frame.sender = node
    frame.to = to
    frame.nav = nav
    frame.start = now
    frame.table = BASIC_TABLE
    frame.frame = NONE
    frame.key = NONE
    frame.counted_only = 1
    frame.serial = control.serial
    control.serial += 1
    if kind == DATA:
        queued = world.frames[station.head]
        frame.frame = station.head
        frame.key = queued.key
        frame.counted_only = queued.counted_only
        frame.bytes = queued.bytes
        frame.end = now + queued.airtime
        frame.table = BROADCAST_TABLE if to == BROADCAST else DATA_TABLE
    elif kind == RTS:
        frame.bytes = RTS_BYTES
        frame.end = now + parameters.rts
    elif kind == CTS:
        frame.bytes = CTS_BYTES
        frame.end = now + parameters.cts
    else:
        frame.table = ACK_TABLE
        frame.bytes = ACK_BYTES
        frame.end = now + parameters.ack
    hearers = gather(world, node, now, slot)
    frame.hearers = hearers
    counters = world.counters[node]
    counters[ON_AIR + kind] += 1
    counters[BYTES_SENT] += frame.bytes
    counters[POTENTIAL] += hearers
    for index in range(hearers):
        heard = world.heard[slot, index]
        arrive(world, heard.node, slot, heard.power, now)
    push(world, frame.end, END, slot, frame.version)


@inlined
def begin(world: World, node: int, now: int) -> int:
    """Access has been granted: say what goes on air first, if anything is left to be sent."""
    station = world.nodes[node]
    station.expiry = NONE
    station.access = GRANTED
    drop_expired(world, node, now)
    if station.queued == 0:
        release(world, node, now)
        return NONE
    frame = world.frames[station.head]
    return RTS if frame.to != BROADCAST and frame.bytes > world.parameters[0].rts_threshold else DATA


@inlined
def protection(world: World, node: int, kind: int) -> int:
    """How long the medium is needed after the first frame of an exchange."""
    parameters = world.parameters[0]
    frame = world.frames[world.nodes[node].head]
    if frame.to == BROADCAST:
        return 0
    acknowledgement = parameters.sifs + parameters.ack
    if kind == DATA:
        return int(acknowledgement)
    return int(2 * parameters.sifs + parameters.cts + frame.airtime + acknowledgement)


@kernel
def end(world: World, slot: int, now: int, cut: int) -> None:
    """A transmission is over, or has been ``cut`` short because its sender was switched off."""
    frame = world.air[slot]
    for index in range(frame.hearers):
        heard = world.heard[slot, index]
        node = heard.node
        station = world.nodes[node]
        if station.stage != LISTENING:
            settle(world, node, now)
            if station.lock == slot and station.stage != LISTENING:
                station.stage = LISTENING
                if cut:
                    lose(world, slot, node, SWITCHED_OFF)
                elif survives(world, slot, node, 1):
                    _received(world, node, slot, now)
                else:
                    lose(world, slot, node, COLLIDED)
                    station.nav_reset += 1
                    station.eifs_until = now + world.parameters[0].eifs
        fade(world, node, heard.power, now)
    sender = frame.sender
    station = world.nodes[sender]
    station.sending = NONE
    if not cut:
        _sent(world, slot, now)
    if station.sensed == 0:
        vacated(world, sender, now)
    frame.version += 1
    frame.next = world.control[0].free_air
    world.control[0].free_air = slot


@inlined
def _sent(world: World, slot: int, now: int) -> None:
    """The sender is done with sending."""
    frame = world.air[slot]
    node = frame.sender
    station = world.nodes[node]
    if frame.kind == DATA and frame.to == BROADCAST:
        complete(world, node, SENT)
        release(world, node, now)
    elif frame.kind in (DATA, RTS):
        station.waiting = FOR_ACK if frame.kind == DATA else FOR_CTS
        station.timer += 1
        push(world, now + world.parameters[0].response_timeout, TIMEOUT, node, station.timer)


@inlined
def _received(world: World, node: int, slot: int, now: int) -> None:
    """The station could read the frame, whomever it was for."""
    station = world.nodes[node]
    frame = world.air[slot]
    parameters = world.parameters[0]
    counters = world.counters[node]
    counters[RECEIVED] += 1
    counters[BYTES_RECEIVED] += frame.bytes
    station.eifs_until = 0
    station.nav_reset += 1
    if frame.to == BROADCAST:
        _deliver(world, node, slot)
    elif frame.to != node:
        station.nav_until = max(station.nav_until, now + frame.nav)
        if frame.kind == RTS:
            # If no frame follows, the RTS was in vain and nothing needs protection (IEEE 802.11-2016, 10.3.2.4).
            wait = 2 * parameters.sifs + parameters.cts + parameters.preamble[BASIC_TABLE] + 2 * parameters.slot
            push(world, now + wait, NAV_RESET, node, station.nav_reset)
    elif frame.kind == DATA:
        queued = world.frames[frame.frame]
        if queued.delivered:
            counters[DUPLICATES] += 1
        else:
            queued.delivered = 1
            _deliver(world, node, slot)
        _respond(world, node, ACK, frame.sender, 0, now)
    elif frame.kind == RTS:
        if station.nav_until <= now:
            _respond(world, node, CTS, frame.sender, frame.nav - parameters.sifs - parameters.cts, now)
    elif frame.kind == CTS:
        if station.waiting == FOR_CTS:
            station.waiting = NOTHING
            station.timer += 1
            _respond(world, node, DATA, frame.sender, parameters.sifs + parameters.ack, now)
    elif station.waiting == FOR_ACK:
        station.waiting = NOTHING
        station.timer += 1
        station.window = parameters.cw_min
        complete(world, node, ACKNOWLEDGED)
        release(world, node, now)


@inlined
def _deliver(world: World, node: int, slot: int) -> None:
    frame = world.air[slot]
    world.counters[node, DELIVERED] += 1
    if frame.counted_only == 0:
        queued = world.frames[frame.frame]
        copy = queued.copy
        if copy > 0 and world.known[node, copy & (world.known.shape[1] - 1)] == copy:
            queued.unread += 1
            world.unread[node, queued.door, 0] += 1
            world.unread[node, queued.door, 1] += frame.bytes
        else:
            report(world.control, world.reports, DELIVERIES, frame.key, node, frame.sender)
            if queued.group > 0 and world.once[node, queued.door] == queued.group:
                world.known[node, copy & (world.known.shape[1] - 1)] = copy


@inlined
def _respond(world: World, node: int, kind: int, to: int, nav: int, now: int) -> None:
    """Send a frame after SIFS, whatever the medium is like then."""
    station = world.nodes[node]
    station.response += 1
    station.response_kind = kind
    station.response_to = to
    station.response_nav = nav
    push(world, now + world.parameters[0].sifs, RESPONSE, node, station.response)


@inlined
def expire(world: World, node: int, kind: int, version: int, now: int) -> None:
    """A timer of the station runs out, if it is still meant."""
    station = world.nodes[node]
    if version != (station.timer if kind == TIMEOUT else station.nav_reset):
        return
    if station.stage != LISTENING:
        settle(world, node, now)
    if kind == TIMEOUT:
        _time_out(world, node, now)
    elif station.stage != PAYLOAD:
        # No frame followed the RTS that was overheard.
        station.nav_until = min(station.nav_until, now)
    resume(world, node)


@inlined
def _time_out(world: World, node: int, now: int) -> None:
    """No response has begun; or one is under way, then wait for its end, which comes before this event."""
    station = world.nodes[node]
    parameters = world.parameters[0]
    if station.stage == PAYLOAD:
        push(world, world.air[station.lock].end, TIMEOUT, node, station.timer)
        return
    station.waiting = NOTHING
    station.timer += 1
    station.retries += 1
    if station.retries >= parameters.retry_limit:
        complete(world, node, RETRIES_EXHAUSTED)
        station.window = parameters.cw_min
    else:
        station.window = min(2 * station.window + 1, parameters.cw_max)
    station.quiet_from = max(station.quiet_from, now)
    release(world, node, now)


@inlined
def switch_off(world: World, node: int, now: int) -> None:
    """Cut what is being sent, lose what is being received, drop what is queued."""
    station = world.nodes[node]
    station.on = 0
    if station.stage != LISTENING:
        settle(world, node, now)
    if station.stage != LISTENING:
        station.stage = LISTENING
        lose(world, station.lock, node, SWITCHED_OFF)
    station.access = NOT_REQUESTED
    while station.queued > 0:
        complete(world, node, OFF)
    station.waiting = NOTHING
    station.timer += 1
    station.response += 1
    station.nav_reset += 1
    station.slots = 0
    station.expiry = NONE
    station.window = world.parameters[0].cw_min
    station.nav_until = min(station.nav_until, now)
    station.eifs_until = 0
    if station.sending >= 0:
        end(world, station.sending, now, 1)
