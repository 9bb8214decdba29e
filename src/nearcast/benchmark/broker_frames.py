"""Reading what a broker sends, in machine code: the load generator must not be what is measured.

Each function walks over the whole frames in ``data[:stop]``, notes the number that each delivered payload begins
with (and its packet identifier, 0 if it has none), counts frames by kind in ``tally`` and returns how many bytes it
has consumed.  The kinds are MQTT's packet types, for the other protocols too; ``tally[REFUSED]`` counts refusals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearcast.benchmark.broker_packets import CONNACK, NUMBER_BYTES, PUBACK, PUBLISH, SUBACK
from nearcast.compiled import inlined, kernel

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Scan = Callable[[Bytes, int, int, Numbers, Numbers, Numbers], int]

REFUSED: Final = 0  # no packet has type 0
TOTAL: Final = 16
"""What the numbers add up to with which Redis answers."""

KINDS: Final = 17
_FAILURE: Final = 0x80  # reason codes from here on (MQTT 5, 2.4)
_CARRIAGE_RETURN: Final = 13
_ZERO, _NINE = 48, 57
_M, _MINUS, _E, _STAR, _COLON, _GREATER = 77, 45, 101, 42, 58, 62


@inlined
def _number(data: Bytes, start: int) -> int:
    value = 0
    for offset in range(NUMBER_BYTES):
        value = value * 256 + data[start + offset]
    return value


@kernel
def mqtt_frames(data: Bytes, stop: int, payload: int, numbers: Numbers, identifiers: Numbers, tally: Numbers) -> int:
    start = found = 0
    while stop - start >= 2 and found < len(numbers):
        length, shift, body = 0, 0, start + 1
        while body < stop and body - start <= 4:
            part = int(data[body])
            body += 1
            length |= (part & 127) << shift
            shift += 7
            if part < 128:
                break
        end = body + length
        if data[body - 1] >= 128 or end > stop:
            break
        kind = data[start] >> 4
        tally[kind] += 1
        if kind == PUBLISH:
            # The payload is the end of the packet, whatever topic and properties come before it.
            numbers[found] = _number(data, end - payload) if length > payload else -1
            identifiers[found] = 0
            if data[start] & 6:
                after = body + 2 + data[body] * 256 + data[body + 1]
                identifiers[found] = data[after] * 256 + data[after + 1]
            found += 1
        elif kind == PUBACK:
            tally[REFUSED] += length > 2 and data[body + 2] >= _FAILURE
        elif kind == SUBACK:
            for at in range(body + 2, end):
                if data[at] >= _FAILURE:
                    tally[REFUSED] += 1
                    break
        elif kind == CONNACK:
            tally[REFUSED] += data[body + 1] != 0
        start = end
    return start


@kernel
def nats_frames(
    data: Bytes,
    stop: int,
    payload: int,  # noqa: ARG001 - nothing is delivered here
    numbers: Numbers,  # noqa: ARG001
    identifiers: Numbers,  # noqa: ARG001
    tally: Numbers,
) -> int:
    """``MSG subject sid size``, a line, then that many bytes: JetStream's acknowledgement, or its error."""
    start = 0
    while start < stop:
        line = start
        while line < stop and data[line] != _CARRIAGE_RETURN:
            line += 1
        if line + 2 > stop:
            break
        end = line + 2
        if data[start] == _M:
            size, unit, at = 0, 1, line - 1
            while data[at] >= _ZERO and data[at] <= _NINE:
                size += (data[at] - _ZERO) * unit
                unit *= 10
                at -= 1
            body, end = end, end + size + 2
            if end > stop:
                break
            tally[PUBACK] += 1
            tally[REFUSED] += data[body + 2] == _E  # {"error": ...
        elif data[start] == _MINUS:
            tally[REFUSED] += 1
        start = end
    return start


@kernel
def redis_frames(data: Bytes, stop: int, payload: int, numbers: Numbers, identifiers: Numbers, tally: Numbers) -> int:
    """Pushed messages, arrays (RESP3: pushes) of three texts of which the last is the payload; answers to SUBSCRIBE, which look alike;
    and numbers, the answers to other commands.
    """
    start = found = 0
    while start < stop and found < len(numbers):
        if data[start] == _COLON:
            line, value = start + 1, 0
            while line < stop and data[line] != _CARRIAGE_RETURN:
                value = value * 10 + (data[line] - _ZERO)
                line += 1
            if line + 1 >= stop:
                break
            tally[PUBACK] += 1
            tally[TOTAL] += value
            start = line + 2
            continue
        if data[start] != _STAR and data[start] != _GREATER:
            tally[REFUSED] += 1  # nothing else is expected here
            return stop
        # "*3", then two texts with their lengths, then the length of a text or a number: six lines.
        line, lines = start, 0
        while line + 1 < stop and lines < 6:
            lines += data[line] == _CARRIAGE_RETURN
            line += 1
        if lines < 6 or line >= stop:
            break
        body = line + 1
        if data[start + 4 + 4] == _M + 32:  # message, not subscribe
            end = body + payload + 2
            if end > stop:
                break
            numbers[found] = _number(data, body)
            identifiers[found] = 0
            found += 1
            tally[PUBLISH] += 1
            start = end
        else:
            tally[SUBACK] += 1
            start = body
    return start
