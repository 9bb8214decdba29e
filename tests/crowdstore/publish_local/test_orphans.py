"""Objects whose owners are gone, and of which others have copies: another mechanism that ran before has left them there."""

from __future__ import annotations

import pytest
from tests.crowdstore.crowd import Crowd

from nearcast.crowdstore.objects import Metadata, Publication
from nearcast.crowdstore.publish_local.messages import Absent, Have, Search
from nearcast.crowdstore.storage import PORT, Failure, Outcome
from nearcast.runtime.messages import Message
from nearcast.transition.specification import MechanismSpec

PLSG = MechanismSpec.of("PL/SG", timeout=1.0, retries=1)
LINE = [(90.0 * x, 0.0) for x in range(6)]
CONTENT = bytes(range(250)) * 30
FALSE = bytes(len(CONTENT))


def crowd_with(*holders: tuple[int, bytes]) -> tuple[Crowd, Metadata]:
    """The first publishes and fails; these have something under its name."""
    crowd = Crowd(LINE, PLSG)
    crowd.run(40)
    metadata = crowd.publish("n0", "a", "t", content=CONTENT)
    for node, content in holders:
        crowd.stores[f"n{node}"].nucleus.held[metadata.key] = Publication(metadata, content)
    crowd.run(1)
    crowd.world.hosts["n0"].fail()
    return crowd, metadata


def outcome_of(crowd: Crowd, node: int, metadata: Metadata, seconds: float = 20.0) -> Outcome:
    crowd.download(f"n{node}", metadata)
    crowd.run(seconds)
    [outcome] = [outcome for what, outcome in crowd.heard.outcomes if what == "download"]
    return outcome


def sent(crowd: Crowd, node: int, kind: type[Message]) -> int:
    return sum(
        messages
        for (way, name), (messages, _) in crowd.network.links[f"n{node}"].books.items()
        if (way, name) == ("sent", kind.__struct_config__.tag)
    )


def totals(crowd: Crowd) -> tuple[int, int, int]:
    """Searches, floods and relays, of all who are left."""
    found = [crowd.stores[f"n{node}"].statistics().storage for node in range(1, len(LINE))]
    return sum(it.searched for it in found), sum(it.floods for it in found), sum(it.relayed for it in found)


@pytest.mark.parametrize("holder", [1, 2, 4])
def test_a_copy_is_found_wherever_it_is_and_the_search_ends_there(holder: int) -> None:
    crowd, metadata = crowd_with((holder, CONTENT))
    assert outcome_of(crowd, 5, metadata) == Outcome(content=CONTENT)
    assert totals(crowd) == (1, 1, 4 - holder)


def test_nobody_searches_while_the_owner_answers() -> None:
    crowd, metadata = crowd_with((3, FALSE))
    crowd.world.hosts["n0"].join()
    crowd.stores["n0"].nucleus.published[metadata.key] = Publication(metadata, CONTENT)
    crowd.run(40)
    assert outcome_of(crowd, 5, metadata) == Outcome(content=CONTENT)
    assert totals(crowd) == (0, 0, 0)


def test_who_has_something_else_is_left_for_who_has_it() -> None:
    crowd, metadata = crowd_with((3, FALSE), (5, CONTENT))
    # Both are asked: one is on either side.
    assert outcome_of(crowd, 4, metadata) == Outcome(content=CONTENT)


def test_what_nobody_has_times_out_after_one_search() -> None:
    crowd, metadata = crowd_with((3, FALSE))
    assert outcome_of(crowd, 5, metadata).failure is Failure.TIMED_OUT
    assert totals(crowd)[:2] == (1, 1)


def test_who_has_it_no_more_says_so_and_another_one_is_asked() -> None:
    crowd, metadata = crowd_with((1, CONTENT))
    crowd.download("n5", metadata)
    crowd.run(2.0001)  # after both requests to the owner: the search begins, and has three relays before it
    crowd.network.links["n4"].open_ports[PORT].send("n5", Have("n4", "n5", 3, metadata.key))
    crowd.run(3.0)
    assert sent(crowd, 4, Absent) == 1
    assert dict(crowd.heard.outcomes)["download"] == Outcome(content=CONTENT)


def test_who_says_for_ever_to_have_it_is_asked_once() -> None:
    crowd, metadata = crowd_with()
    crowd.download("n5", metadata)
    for _ in range(100):
        crowd.network.links["n4"].open_ports[PORT].send("n5", Have("n4", "n5", 3, metadata.key))
        crowd.run(0.1)
    assert dict(crowd.heard.outcomes)["download"].failure is Failure.TIMED_OUT


def test_what_its_owner_has_withdrawn_it_serves_no_more_though_it_has_a_copy() -> None:
    crowd = Crowd(LINE, PLSG)
    crowd.run(40)
    metadata = crowd.publish("n0", "a", "t", content=CONTENT)
    crowd.unpublish("n0", "a")
    crowd.stores["n0"].nucleus.held[metadata.key] = Publication(metadata, CONTENT)
    assert outcome_of(crowd, 5, metadata).failure is Failure.NOT_FOUND
    # And so it says when it hears a search.
    search = Search("n1", metadata.key, metadata.digest, crowd.simulation.now())
    crowd.network.links["n1"].open_ports[PORT].send("n0", search)
    crowd.run(1)
    assert (sent(crowd, 0, Absent), sent(crowd, 0, Have), sent(crowd, 0, Search)) == (2, 0, 0)
