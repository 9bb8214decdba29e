"""Routers without room: the newest messages go on to others, and come back when they are wanted."""

from __future__ import annotations

import pytest
from tests.overlay.temporal.waiting import WaitingTown
from tests.overlay.temporal.worlds import inside

from nearcast.errors import InvalidSettings, QuotaExceeded
from nearcast.model.area import Box
from nearcast.overlay.temporal.future import FutureSettings
from nearcast.overlay.temporal.settings import TemporalSettings

CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]
FAR_AWAY = Box(0.042, 0.0, 0.048, 0.01)
"""In the area of r004 alone."""


def town(most: int = 2) -> WaitingTown:
    """r001 to r003 have no access network."""
    return WaitingTown(
        5,
        CHAIN,
        TemporalSettings(settling=3.0),
        future=FutureSettings(most=most, settle=2.0),
        without_access=(1, 2, 3),
        check_wire=True,
    )


def lean(there: WaitingTown) -> dict[str, int]:
    return {name: future.statistics().lean for name, future in there.futures.items() if future.statistics().held}


def test_the_newest_are_pushed_to_where_they_may_be_needed() -> None:
    there = town()
    for number in range(4):
        there.publish(1, there.message("overlaps", 10, 1_000, name=f"e{number}", reach=FAR_AWAY))
        there.run(2)
    assert [there.holding(f"e{number}") for number in range(2)] == [["r001"]] * 2
    # Each of them had room for two; the last is an access network, which keeps what it is given.
    assert there.holding("e2") == ["r001", "r002"]
    assert there.holding("e3") == ["r001", "r002"]
    assert lean(there) == {"r001": 2, "r002": 0}
    for number in range(4, 8):
        there.publish(1, there.message("overlaps", 10, 1_000, name=f"e{number}", reach=FAR_AWAY))
        there.run(2)
    assert lean(there) == {"r001": 6, "r002": 4, "r003": 2, "r004": 0}
    assert there.holding("e7") == ["r001", "r002", "r003", "r004"]


@pytest.mark.parametrize("where", ["r004", "r000"])
def test_nobody_is_missed_and_everybody_gets_the_whole_message(where: str) -> None:
    """Also who comes on the other side: the payload is brought back for him."""
    there = town(most=1)
    ada = there.person("ada")
    payloads: list[bytes] = []
    ada.device._applications[0]._receive = lambda event: payloads.append(event.payload)  # type: ignore[misc]
    for number in range(6):
        to = "role = 'staff'" if number % 2 else "role = 'guest'"
        reach = Box(0.002, 0.0, 0.048, 0.01)
        there.publish(2, there.message("overlaps", 0, 1_000, name=f"e{number}", to=to, reach=reach))
        there.run(2)
    assert lean(there)["r002"] >= 5
    ada.register("me", {"role": "staff"})
    ada.go(where, inside(int(where[1:])))
    there.run(60)
    assert payloads == [b"..."] * 3


def test_who_comes_where_nobody_was_expected_gets_it_as_well() -> None:
    """Outside of all areas that were known when the message was given away."""
    there = town(most=1)
    ada = there.person("ada")
    for number in range(3):
        there.publish(2, there.message("overlaps", 0, 1_000, name=f"e{number}", reach=FAR_AWAY))
        there.run(3)
    assert lean(there)["r002"] == 2
    ada.register("me", {"role": "staff"})
    ada.go("r000", inside(4))  # hears r000, and stands far away
    there.run(60)
    assert sorted(ada.got) == ["e0", "e1", "e2"]
    assert there.futures["r002"].statistics().brought > 0


def test_what_nobody_else_can_take_is_refused_while_it_can_be() -> None:
    there = town()
    for number in range(2):
        there.publish(4, there.message("overlaps", 10, 1_000, name=f"e{number}", reach=FAR_AWAY))
    with pytest.raises(QuotaExceeded, match="publish it later"):
        there.publish(4, there.message("overlaps", 10, 1_000, name="e2", reach=FAR_AWAY))
    # What comes from others is kept all the same: there is no other place for it.
    for number in range(3, 12):
        there.publish(3, there.message("overlaps", 10, 1_000, name=f"e{number}", reach=FAR_AWAY))
        there.run(2)
    assert there.futures["r004"].statistics().crowded > 0
    assert there.holding("e2") == []


def test_there_is_room_for_something() -> None:
    with pytest.raises(InvalidSettings):
        FutureSettings(most=0)
