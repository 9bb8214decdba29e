"""Packets wait within bounds: five for a destination, five hundred in all, half a minute."""

from __future__ import annotations

from nearcast.crowdstore.objects import ObjectKey
from nearcast.crowdstore.publish_local.messages import Absent
from nearcast.crowdstore.unicast.waiting import LONGEST, MOST, MOST_PER_DESTINATION, Waiting


def _packet(destination: str, number: int) -> Absent:
    return Absent("a", destination, 9, ObjectKey("a", str(number)))


def test_the_first_of_a_destination_wait_in_order() -> None:
    waiting = Waiting()
    packets = [_packet("z", number) for number in range(MOST_PER_DESTINATION + 2)]
    for packet in packets:
        waiting.add(packet, 0)
    assert (len(waiting), waiting.dropped) == (MOST_PER_DESTINATION, 2)
    assert waiting.take("z", LONGEST) == packets[:MOST_PER_DESTINATION]
    assert waiting.take("z", LONGEST) == []
    assert len(waiting) == 0


def test_nothing_waits_too_long() -> None:
    waiting = Waiting()
    waiting.add(_packet("y", 1), 0)
    waiting.add(_packet("z", 2), 1)
    waiting.forget(LONGEST + 1)
    assert [*waiting.destinations] == ["z"]
    assert waiting.take("z", LONGEST + 2) == []
    assert (len(waiting), waiting.dropped) == (0, 2)


def test_there_is_an_end_to_what_waits_in_all() -> None:
    waiting = Waiting()
    for number in range(MOST + 7):
        waiting.add(_packet(f"z{number}", number), 0)
    assert (len(waiting), waiting.dropped) == (MOST, 7)
    assert len([*waiting.destinations]) == MOST
