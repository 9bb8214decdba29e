from collections.abc import Collection

import pytest
from tests.transition.mechanisms import Envelope, Grid, Located, Radial, Scheme

from nearcast.errors import InvalidInput, TransitionFailed
from nearcast.transition.custom import Transition, Transitions
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import NullMechanism, null_of


class Wide(Grid):
    pass


class Between(Transition[Mechanism, Mechanism]):
    def __init__(self, source: type, target: type) -> None:
        self.source, self.target = source, target

    def transfer(self, source: Mechanism, target: Mechanism, members: Collection[str] | None) -> None: ...


def registry(*pairs: tuple[type, type]) -> Transitions:
    transitions = Transitions()
    for source, target in pairs:
        transitions.register(Between(source, target))
    return transitions


def chosen(transitions: Transitions, source: type, target: type) -> tuple[type, type] | None:
    found = transitions.resolve(source, target)
    return (found.source, found.target) if found else None


def test_without_a_fitting_transition_none_is_found() -> None:
    assert chosen(registry((Radial, Grid)), Radial, Envelope) is None
    assert chosen(registry((Radial, Wide)), Radial, Grid) is None, "derived types do not serve their bases"


@pytest.mark.parametrize(
    ("pairs", "winner"),
    [
        ([(Radial, Wide), (Radial, Grid), (Located, Wide)], 0),  # exact
        ([(Scheme, Wide), (Located, Wide)], 1),  # the closer base
        ([(Located, Wide), (Radial, Located)], 0),  # fewer steps in all
        ([(NullMechanism, Wide), (Scheme, Scheme)], 1),  # the wildcard is the root, weaker than any base
        ([(NullMechanism, NullMechanism), (NullMechanism, Scheme)], 1),
        ([(NullMechanism, NullMechanism)], 0),  # and beats the automatic transfer
        ([(Mechanism, Mechanism), (NullMechanism, Wide)], 0),
    ],
)
def test_the_closest_types_win(pairs: list[tuple[type, type]], winner: int) -> None:
    # In whatever order they were registered.
    assert chosen(registry(*pairs), Radial, Wide) == pairs[winner]
    assert chosen(registry(*reversed(pairs)), Radial, Wide) == pairs[winner]


def test_null_as_a_real_source_or_target_is_only_served_by_transitions_for_null() -> None:
    null = type(null_of(Scheme))
    transitions = registry((Scheme, Grid), (NullMechanism, Grid), (Grid, NullMechanism), (Grid, Scheme))
    assert chosen(transitions, null, Grid) == (NullMechanism, Grid)
    assert chosen(transitions, Grid, null) == (Grid, NullMechanism)
    assert chosen(registry((Scheme, Grid)), null, Grid) is None


def test_two_that_are_equally_close_are_an_error_that_names_them() -> None:
    transitions = registry((Radial, Grid), (Located, Wide))
    with pytest.raises(TransitionFailed, match=r"\(Radial to Grid\) and .*\(Located to Wide\) are equally close"):
        transitions.resolve(Radial, Wide)
    transitions.register(Between(Radial, Wide))
    assert chosen(transitions, Radial, Wide) == (Radial, Wide)


def test_the_same_types_cannot_be_registered_twice() -> None:
    transitions = registry((Radial, Grid))
    with pytest.raises(InvalidInput, match=r"Between \(Radial to Grid\) is registered already"):
        transitions.register(Between(Radial, Grid))
    assert len(transitions) == 1


def test_both_ends_must_be_set() -> None:
    class Forgotten(Transition[Radial, Grid]):
        source = Radial

        def transfer(self, source: Radial, target: Grid, members: Collection[str] | None) -> None: ...

    with pytest.raises(InvalidInput, match=r"Forgotten\.target must be a class"):
        Transitions().register(Forgotten())
