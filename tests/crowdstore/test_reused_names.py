"""An owner that has forgotten what it had published uses a name again: who has a copy of the old object still gets the new one."""

from __future__ import annotations

import pytest
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.venue import dcs
from tests.crowdstore.going_over import LOCAL

from nearcast.crowdstore.objects import Metadata, Publication
from nearcast.crowdstore.storage import Failure, Outcome
from nearcast.transition.specification import MechanismSpec

each_mechanism = pytest.mark.parametrize("mechanism", [LOCAL, dcs(3, 1)], ids=lambda spec: spec.name)


def _reused(crowd: Crowd) -> tuple[Metadata, Metadata]:
    """Two objects of n0 called the same, and n1 has a copy of the first."""
    old = crowd.publish("n0", "film", "goal", content=b"old film")
    crowd.run(10)
    crowd.download("n1", old)
    crowd.run(10)
    crowd.stores["n1"].nucleus.held.setdefault(old.key, Publication(old, b"old film"))
    crowd.world.hosts["n0"].fail()
    crowd.run(40)
    crowd.world.hosts["n0"].join()
    crowd.run(60)
    new = crowd.publish("n0", "film", "goal", content=b"new!")
    crowd.run(10)
    return old, new


def _downloads(crowd: Crowd) -> list[Outcome]:
    return [outcome for what, outcome in crowd.heard.outcomes if what == "download"]


@each_mechanism
def test_a_copy_of_something_else_is_not_taken_for_it(mechanism: MechanismSpec) -> None:
    crowd = Crowd([(20, 20), (60, 20), (100, 20)], mechanism)
    crowd.run(60)
    _, new = _reused(crowd)
    for host in ("n1", "n2", "n1"):
        crowd.download(host, new)
        crowd.run(30)
        assert _downloads(crowd)[-1] == Outcome(content=b"new!")


@each_mechanism
def test_two_that_are_called_the_same_are_downloaded_at_once(mechanism: MechanismSpec) -> None:
    crowd = Crowd([(20, 20), (60, 20), (100, 20)], mechanism)
    crowd.run(60)
    old, new = _reused(crowd)
    crowd.stores["n1"].nucleus.held.clear()
    for metadata in (old, new, old):
        crowd.download("n2", metadata)
    crowd.run(60)
    gone = Outcome(Failure.NOT_FOUND)
    assert sorted(_downloads(crowd)[1:], key=lambda outcome: outcome.ok) == [gone, gone, Outcome(content=b"new!")]
