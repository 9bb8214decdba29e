"""Who can hear a transmission: a uniform grid, built again before anybody has moved too far."""

from __future__ import annotations

import math

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.motion import x_at, y_at
from nearcast.runtime.simulation.radio.layout import World


@inlined
def refresh(world: World, now: int) -> None:
    """See to it that everybody is still within ``slack`` metres of their place in the grid."""
    control = world.control[0]
    if control.unchecked:
        control.unchecked = 0
        if control.built >= 0 and _jumped(world, now):
            control.built = -1
    if control.built < 0 or control.fastest * (now - control.built) * 1e-9 > world.parameters[0].slack:
        _build(world, now)


@kernel
def _jumped(world: World, now: int) -> bool:
    """Look at all legs: has anybody been put somewhere else, rather than walked there?"""
    control = world.control[0]
    time = control.start_us + now // 1000
    fastest = control.fastest**2
    farthest = 0.0
    for node in range(len(world.legs)):
        leg = world.legs[node]
        fastest = max(fastest, leg.vx * leg.vx + leg.vy * leg.vy)
        dx = x_at(world.legs, node, time) - world.grid_x[node]
        dy = y_at(world.legs, node, time) - world.grid_y[node]
        farthest = max(farthest, dx * dx + dy * dy)
    control.fastest = math.sqrt(fastest)
    return bool(math.sqrt(farthest) > control.fastest * (now - control.built) * 1e-9 + 0.5)


@kernel
def _build(world: World, now: int) -> None:
    """Sort everybody into cells by counting."""
    control = world.control[0]
    starts = world.cell_starts
    time = control.start_us + now // 1000
    count = len(world.legs)
    west = south = math.inf
    east = north = -math.inf
    fastest = 0.0
    for node in range(count):
        leg = world.legs[node]
        fastest = max(fastest, leg.vx * leg.vx + leg.vy * leg.vy)
        x = x_at(world.legs, node, time)
        y = y_at(world.legs, node, time)
        world.grid_x[node] = x
        world.grid_y[node] = y
        west = min(west, x)
        east = max(east, x)
        south = min(south, y)
        north = max(north, y)
    side = world.parameters[0].cell
    # Where people are few and far between, larger cells cost nothing.
    while (math.floor((east - west) / side) + 1.0) * (math.floor((north - south) / side) + 1.0) > len(starts) - 1:
        side *= 1.25
    control.built = now
    control.fastest = math.sqrt(fastest)
    control.west = west
    control.south = south
    control.side = side
    control.columns = int((east - west) / side) + 1
    control.rows = int((north - south) / side) + 1
    cells = control.columns * control.rows
    for cell in range(cells + 1):
        starts[cell] = 0
    for node in range(count):
        starts[_cell(world, world.grid_x[node], world.grid_y[node])] += 1
    control.crowd = _largest_crowd(world)
    total = 0
    for cell in range(cells):
        total += starts[cell]
        starts[cell] = total
    starts[cells] = total
    for node in range(count - 1, -1, -1):
        cell = _cell(world, world.grid_x[node], world.grid_y[node])
        starts[cell] -= 1
        world.cell_nodes[starts[cell]] = node


@inlined
def _column(world: World, x: float) -> int:
    control = world.control[0]
    return int(min(max((x - control.west) / control.side, 0.0), control.columns - 1.0))


@inlined
def _row(world: World, y: float) -> int:
    control = world.control[0]
    return int(min(max((y - control.south) / control.side, 0.0), control.rows - 1.0))


@inlined
def _cell(world: World, x: float, y: float) -> int:
    return int(_row(world, y) * world.control[0].columns + _column(world, x))


@inlined
def _largest_crowd(world: World) -> int:
    """Most stations in any nine cells; ``cell_starts`` still holds counts."""
    control = world.control[0]
    largest = 0
    for row in range(control.rows):
        for column in range(control.columns):
            crowd = 0
            for r in range(max(row - 1, 0), min(row + 2, control.rows)):
                for c in range(max(column - 1, 0), min(column + 2, control.columns)):
                    crowd += world.cell_starts[r * control.columns + c]
            largest = max(largest, crowd)
    return largest


@inlined
def gather(world: World, sender: int, now: int, slot: int) -> int:
    """Write down who hears ``sender`` and how loud, and say how many they are."""
    parameters = world.parameters[0]
    control = world.control[0]
    time = control.start_us + now // 1000
    x = x_at(world.legs, sender, time)
    y = y_at(world.legs, sender, time)
    row = _row(world, y)
    column = _column(world, x)
    first_column = max(column - 1, 0)
    last_column = min(column + 1, control.columns - 1)
    count = 0
    for r in range(max(row - 1, 0), min(row + 2, control.rows)):
        # Three cells of a row lie side by side.
        for index in range(
            world.cell_starts[r * control.columns + first_column],
            world.cell_starts[r * control.columns + last_column + 1],
        ):
            node = world.cell_nodes[index]
            dx = x_at(world.legs, node, time) - x
            dy = y_at(world.legs, node, time) - y
            squared = dx * dx + dy * dy
            if squared <= parameters.range_squared and node != sender:
                heard = world.heard[slot, count]
                heard.node = node
                heard.power = parameters.power_at_metre * max(squared, 1.0) ** -parameters.half_exponent
                count += 1
    return count
