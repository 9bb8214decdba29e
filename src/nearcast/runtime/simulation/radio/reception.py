"""What a station makes of the signals around it, in the reading of ns-3 3.37 (``PhyEntity``, ``InterferenceHelper``).

A station locks on the strongest preamble of the last 4 µs if it stands out of noise and interference; a locked station
stays with its frame whatever comes (no capture).  Then header and payload survive with the product of the
probabilities over all stretches of constant interference.  A header that does not survive sets the station free.

Nothing is scheduled for the end of preamble or header: they are decided when interference changes or the frame ends,
whichever is first, since nothing can have changed before.
"""

from __future__ import annotations

import math
from typing import Final

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.radio.access import occupied, vacated
from nearcast.runtime.simulation.radio.draws import uniform
from nearcast.runtime.simulation.radio.layout import (
    BROADCAST,
    DATA,
    DETECTING,
    HEADER,
    HEADERS,
    LISTENING,
    LOSSES,
    LOST,
    NONE,
    PAYLOAD,
    Int64s,
    Records,
    World,
    report,
)
from nearcast.runtime.simulation.radio.modulation import TABLE_LENGTH, TABLE_START_DB, TABLE_STEPS_PER_DB
from nearcast.runtime.simulation.radio.reports import Loss

OUT_OF_RANGE: Final = int(Loss.OUT_OF_RANGE)
COLLIDED: Final = int(Loss.COLLIDED)
PREAMBLE_MISSED: Final = int(Loss.PREAMBLE_MISSED)
BUSY_RECEIVING: Final = int(Loss.BUSY_RECEIVING)
BUSY_SENDING: Final = int(Loss.BUSY_SENDING)
SWITCHED_OFF: Final = int(Loss.SWITCHED_OFF)


@inlined
def lose(world: World, slot: int, node: int, reason: int) -> None:
    world.counters[node, LOST + reason] += 1
    if world.parameters[0].report_losses:
        _tell(world.control, world.air, world.reports, slot, node, reason)


@kernel
def _tell(control: Records, air: Records, reports: Int64s, slot: int, node: int, reason: int) -> None:
    frame = air[slot]
    if frame.kind == DATA and not frame.counted_only and (frame.to in (BROADCAST, node)):
        report(control, reports, LOSSES, frame.key, node, reason)


@inlined
def _log_success(world: World, table: int, sinr: float, duration: int) -> float:
    """Logarithm of the probability to survive ``duration``."""
    parameters = world.parameters[0]
    if sinr >= parameters.errorless[table]:
        return 0.0
    place = (10.0 * math.log10(sinr) - TABLE_START_DB) * TABLE_STEPS_PER_DB
    place = min(max(place, 0.0), TABLE_LENGTH - 1.0)
    index = int(place)
    row = world.tables[table]
    per_bit = row[index] + (place - index) * (row[index + 1] - row[index])
    return float(per_bit * duration * parameters.bits_per_ns[table])


@inlined
def survives(world: World, slot: int, node: int, part: int) -> bool:
    """Let chance decide about a part (0: header, 1: payload) of the frame."""
    log_success = world.nodes[node].log_success
    if log_success == 0.0:
        return True
    return uniform(world.control[0].seed, world.air[slot].serial, 2 * node + part) < math.exp(log_success)


@inlined
def settle(world: World, node: int, now: int) -> None:
    """Bring a reception up to date, before interference changes or the frame ends."""
    station = world.nodes[node]
    parameters = world.parameters[0]
    slot = station.lock
    frame = world.air[slot]
    interference = 0.0
    if station.signals > 1:
        interference = max(station.power - station.lock_power, 0.0)
    sinr = station.lock_power / (parameters.noise_mw + interference)
    loss = NONE
    if station.stage == DETECTING and now >= frame.start + parameters.detection:
        station.stage = HEADER
        if sinr < parameters.preamble_sinr:
            loss = PREAMBLE_MISSED
    since = station.changed
    if station.stage == HEADER and loss < 0:
        payload = frame.start + parameters.preamble[frame.table]
        begin = max(since, frame.start + parameters.training[frame.table])
        end = min(now, payload)
        if end > begin:
            station.log_success += _log_success(world, HEADERS + frame.table, sinr, end - begin)
        if now >= payload:
            since = max(since, payload)
            station.stage = PAYLOAD
            if not survives(world, slot, node, 0):
                loss = COLLIDED
            station.log_success = 0.0
    if loss >= 0:
        station.stage = LISTENING
        lose(world, slot, node, loss)
    elif station.stage == PAYLOAD and now > since:
        station.log_success += _log_success(world, frame.table, sinr, now - since)
    station.changed = now


@inlined
def arrive(world: World, node: int, slot: int, power: float, now: int) -> None:
    """A signal begins."""
    station = world.nodes[node]
    if station.stage != LISTENING:
        settle(world, node, now)
    loser = slot
    loss = NONE
    if station.on == 0:
        loss = SWITCHED_OFF
    elif power < world.parameters[0].reception_mw:
        loss = OUT_OF_RANGE
    elif station.sending >= 0:
        loss = BUSY_SENDING
    elif station.stage > DETECTING:
        loss = BUSY_RECEIVING
    else:
        louder = True
        if station.stage == DETECTING:
            loss = PREAMBLE_MISSED
            louder = power > station.lock_power
            if louder:
                loser = station.lock
        if louder:
            station.stage = DETECTING
            station.lock = slot
            station.lock_power = power
            station.changed = now
            station.log_success = 0.0
    if loss >= 0:
        lose(world, loser, node, loss)
    station.power += power
    station.signals += 1
    if station.sensed == 0 and station.power >= world.parameters[0].carrier_sense_mw:
        station.sensed = 1
        station.busy_since = now
        if station.sending < 0:
            occupied(world, node, now + world.parameters[0].detection)


@inlined
def fade(world: World, node: int, power: float, now: int) -> None:
    """A signal is over, and what there was to read has been read."""
    station = world.nodes[node]
    station.signals -= 1
    station.power = station.power - power if station.signals > 0 else 0.0
    if station.sensed == 1 and station.power < world.parameters[0].carrier_sense_mw:
        station.sensed = 0
        if station.sending < 0:
            vacated(world, node, now)
