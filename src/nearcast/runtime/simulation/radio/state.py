"""The arrays of the radio engine: made from a profile, and made larger when kernels say that they are full."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from nearcast.runtime.simulation.motion import Legs
from nearcast.runtime.simulation.radio.layout import (
    AIR,
    CONTROL,
    COUNTERS,
    DOORS,
    EVENT,
    FRAME,
    HEARD,
    KNOWN,
    NODE,
    NONE,
    PARAMETERS,
    SOURCE,
    Floats,
    Records,
    World,
)
from nearcast.runtime.simulation.radio.modulation import TABLE_LENGTH, TABLE_START_DB, TABLE_STEPS_PER_DB, table
from nearcast.runtime.simulation.radio.profile import Family, RadioProfile


def milliwatts(dbm: float) -> float:
    return float(10.0 ** (dbm / 10.0))


def parameters_of(profile: RadioProfile, *, report_losses: bool) -> tuple[Records, Floats]:
    """The profile as kernels want it, and the tables of bit errors."""
    rates: tuple[int, ...] = (profile.basic_rate, profile.data_rate, profile.ack_rate, profile.rate_of_broadcasts)
    preambles = [profile.preamble_at(rate) for rate in rates]
    headers = [1_000_000 if profile.family_at(rate) is Family.DSSS else 6_000_000 for rate in rates]
    rates = (*rates, *headers)
    tables = np.stack([table(profile.family_at(rate), rate) for rate in rates])
    row = np.zeros(1, PARAMETERS)
    interference_range = profile.interference_range
    slack = 0.1 * interference_range
    values: dict[str, Any] = {
        "power_at_metre": milliwatts(profile.power_at(1.0)),
        "half_exponent": profile.path_loss_exponent / 2.0,
        "range_squared": interference_range**2,
        "reception_mw": milliwatts(profile.reception_threshold_dbm) * (1.0 - 1e-9),
        # Sums of signals come and go; what remains of them is not exact to the last bit.
        "carrier_sense_mw": milliwatts(profile.carrier_sense_threshold_dbm) * (1.0 - 1e-6),
        "noise_mw": milliwatts(profile.noise_dbm),
        "preamble_sinr": 10.0 ** (profile.preamble_sinr_db / 10.0),
        "cell": interference_range + slack + 1.0,
        "slack": slack,
        "bits_per_ns": [rate * 1e-9 for rate in rates],
        "errorless": [_errorless(row_of_table) for row_of_table in tables],
        "detection": profile.preamble_detection_ns,
        "training": [preamble - header for preamble, header in preambles],
        "preamble": [preamble for preamble, _ in preambles],
        "slot": profile.slot_ns,
        "sifs": profile.sifs_ns,
        "difs": profile.difs_ns,
        "eifs": profile.eifs_ns,
        "response_timeout": profile.sifs_ns + profile.slot_ns + profile.preamble_ns,
        "rts": profile.rts_ns,
        "cts": profile.cts_ns,
        "ack": profile.ack_ns,
        "lifetime": profile.lifetime_ns,
        "cw_min": profile.cw_min,
        "cw_max": profile.cw_max,
        "retry_limit": profile.retry_limit,
        "rts_threshold": profile.rts_threshold,
        "queue_frames": profile.queue_frames,
        "report_losses": int(report_losses),
    }
    for name, value in values.items():
        row[name] = value
    return row, tables


def _errorless(log_success: Floats) -> float:
    """The SINR from which on a frame of any length survives but for one in a billion."""
    index = int(np.argmax(log_success * 8.0 * 4096.0 > -1e-9)) or TABLE_LENGTH
    return float(10.0 ** ((TABLE_START_DB + index / TABLE_STEPS_PER_DB) / 10.0))


def new_world(profile: RadioProfile, legs: Legs, seed: int, start_us: int, *, report_losses: bool) -> World:
    count = len(legs)
    parameters, tables = parameters_of(profile, report_losses=report_losses)
    control = np.zeros(1, CONTROL)
    control["seed"] = seed % 2**64
    control["start_us"] = start_us
    control["built"] = control["free_frame"] = control["free_air"] = NONE
    nodes = np.zeros(count, NODE)
    nodes["on"] = 1
    nodes["window"] = profile.cw_min
    for name in ("lock", "sending", "head", "tail", "expiry", "alarm"):
        nodes[name] = NONE
    # Long ago, so that nobody waits for a medium that has not been used yet.
    nodes["quiet_from"] = nodes["nav_until"] = nodes["busy_since"] = -(10**12)
    world = World(
        parameters=parameters,
        control=control,
        tables=tables,
        legs=legs,
        nodes=nodes,
        counters=np.zeros((count, COUNTERS), np.int64),
        frames=np.zeros(0, FRAME),
        air=np.zeros(0, AIR),
        heard=np.zeros((0, 1), HEARD),
        heap=np.zeros(0, EVENT),
        sources=np.zeros(0, SOURCE),
        cell_starts=np.zeros(2 * count + 65, np.int32),
        cell_nodes=np.zeros(count, np.int32),
        grid_x=np.zeros(count),
        grid_y=np.zeros(count),
        reports=np.zeros((3, 0, 3), np.int64),
        known=np.zeros((count, 1), np.int32),
        unread=np.zeros((count, DOORS, 2), np.int64),
        once=np.zeros((count, DOORS), np.int32),
    )
    return with_more_reports(with_more_heap(with_more_frames(with_more_air(world))))


def with_more_frames(world: World) -> World:
    frames, first = _longer(world.frames, 64)
    _chain(frames, first, world.control, "free_frame")
    return world._replace(frames=frames)


def with_more_air(world: World) -> World:
    air, first = _longer(world.air, 16)
    _chain(air, first, world.control, "free_air")
    heard = np.zeros((len(air), world.heard.shape[1]), HEARD)
    heard[:first] = world.heard
    return world._replace(air=air, heard=heard)


def with_wider_rows(world: World) -> World:
    """Room for as many hearers as there are stations in any nine cells."""
    width = 1 << max(4, math.ceil(math.log2(int(world.control["crowd"][0]) + 1)))
    heard = np.zeros((len(world.air), width), HEARD)
    heard[:, : world.heard.shape[1]] = world.heard
    return world._replace(heard=heard)


def with_more_heap(world: World) -> World:
    return world._replace(heap=_longer(world.heap, 1024)[0])


def with_more_reports(world: World) -> World:
    rows = world.reports.shape[1]
    reports = np.zeros((3, max(1024, 2 * rows), 3), np.int64)
    reports[:, :rows] = world.reports
    return world._replace(reports=reports)


def with_memory(world: World) -> World:
    """Room for what stations know; who never needs it does not pay for it."""
    return world._replace(known=np.zeros((len(world.nodes), KNOWN), np.int32))


def _longer(rows: npt.NDArray[Any], smallest: int) -> tuple[npt.NDArray[Any], int]:
    """Twice as many rows, the old ones first; and how many those are."""
    longer = np.zeros((max(smallest, 2 * len(rows)), *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    return longer, len(rows)


def _chain(pool: Records, first: int, control: Records, head: str) -> None:
    """Put the rows from ``first`` on into the free list."""
    pool["next"][first:] = np.arange(first + 1, len(pool) + 1)
    pool["next"][-1] = control[head][0]
    control[head] = first
