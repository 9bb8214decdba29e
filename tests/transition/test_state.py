from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transition.mechanisms import Envelope, Grid, Radial

from nearcast.errors import InvalidInput, TransitionFailed
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.state import Parameter, Savepoint, Transferred, carry_over, declarations, drop, set_parameter

if TYPE_CHECKING:
    from decimal import Decimal

MEMBERS = st.sampled_from("abcdefgh")
PLACES = st.dictionaries(MEMBERS, st.integers())


class Source(Mechanism):
    same: Annotated[dict[str, list[int]], Transferred()]
    other: Annotated[dict[str, int], Transferred()]
    only_here: Annotated[int, Transferred()]
    for_setter: Annotated[int, Transferred(setter="take")]
    never_set: Annotated[int, Transferred()]
    callback: Annotated[Callable[[], None], Transferred()]
    private: int

    def __init__(self) -> None:
        self.same = {"a": [1]}
        self.other = {"b": 2}
        self.only_here = 3
        self.for_setter = 4
        self.callback = self.called
        self.private = 5

    def called(self) -> None: ...


class Target(Mechanism):
    same: Annotated[dict[str, list[int]], Transferred()]
    other: Annotated[dict[str, float], Transferred()]
    never_set: Annotated[int, Transferred()]
    callback: Annotated[Callable[[], None], Transferred()]
    private: int

    def __init__(self) -> None:
        self.other = {}
        self.never_set = 1
        self.private = 0
        self.taken: list[int] = []

    def take(self, value: int) -> None:
        self.taken.append(value)


def test_fields_that_both_declare_with_equal_type_are_copied_and_no_others() -> None:
    source, target = Source(), Target()
    carry_over(source, target)
    assert target.same == {"a": [1]}
    assert target.other == {}  # another type
    assert not hasattr(target, "only_here")
    assert target.private == 0
    assert target.never_set == 1  # the source has no value


def test_a_setter_is_called_with_the_value_also_if_the_target_declares_no_such_field() -> None:
    target = Target()
    carry_over(Source(), target)
    assert target.taken == [4]
    assert not hasattr(target, "for_setter")


def test_without_the_setter_the_field_is_copied_as_others_are() -> None:
    class Plain(Mechanism):
        for_setter: Annotated[int, Transferred()]

    plain = Plain()
    carry_over(Source(), plain)
    assert plain.for_setter == 4


def test_containers_are_copied_and_what_is_no_container_is_handed_over() -> None:
    source, target = Source(), Target()
    carry_over(source, target)
    target.same["a"].append(2)
    target.same["c"] = []
    assert source.same == {"a": [1]}
    assert target.callback == source.called


@given(PLACES, PLACES, st.sets(MEMBERS))
def test_a_partial_transfer_conserves_every_entry(
    mine: dict[str, int], theirs: dict[str, int], moved: set[str]
) -> None:
    # As the proxy has it: nobody is a member of two mechanisms.
    theirs = {member: place for member, place in theirs.items() if member not in mine}
    source, target = Radial([]), Envelope([])
    source.places, target.places = dict(mine), dict(theirs)
    carry_over(source, target, sorted(moved), running=True)
    assert source.places == mine, "nothing leaves before all has arrived"
    drop(source, moved)
    assert source.places == {member: place for member, place in mine.items() if member not in moved}
    assert target.places == theirs | {member: place for member, place in mine.items() if member in moved}


def test_a_running_target_keeps_its_shared_state() -> None:
    source, target = Radial([]), Envelope([])
    source.listeners, target.listeners = [print], []
    carry_over(source, target, ["a"], running=True)
    assert target.listeners == []
    carry_over(source, target, ["a"])
    assert target.listeners == [print]


@given(PLACES, PLACES, st.sets(MEMBERS))
def test_a_savepoint_brings_back_what_was_there(before: dict[str, int], after: dict[str, int], of: set[str]) -> None:
    target = Radial([])
    target.places = held = dict(before)
    saved = Savepoint(target, sorted(of))
    target.places = {member: place for member, place in after.items() if member in of}
    held.update(target.places)
    saved.restore()
    assert target.places is held
    assert held == before


def test_what_is_declared_per_member_must_be_a_mapping() -> None:
    source = Radial([])
    source.places = 3  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match=r"Radial\.places is declared per member, but is no mapping: 3"):
        carry_over(source, Envelope([]), ["a"])


def test_a_setter_for_what_is_kept_per_member_gets_the_entries_that_move() -> None:
    class From(Mechanism):
        places: Annotated[dict[str, int], Transferred("adopt", per_member=True)]

    class To(Mechanism):
        def adopt(self, places: Mapping[str, int]) -> None:
            self.adopted = places

    source, target = From(), To()
    source.places = {"a": 1, "b": 2}
    carry_over(source, target, ["b", "c"], running=True)
    assert target.adopted == {"b": 2}


def test_a_default_that_the_whole_class_shares_is_never_filled() -> None:
    class Shared(Mechanism):
        places: Annotated[dict[str, int], Transferred(per_member=True)] = {}  # noqa: RUF012 - the mistake in question

    source, target = Radial([]), Shared()
    source.places = {"a": 1}
    carry_over(source, target, ["a"])
    assert target.places == {"a": 1}
    assert Shared.places == {}


def test_declarations_are_inherited_and_without_our_marks() -> None:
    found = declarations(Envelope)
    assert found.transferred["places"][0] == dict[str, int]
    assert found.per_member == ("places",)
    assert found.parameters == {"alpha": float}


def test_marks_must_be_made_and_annotations_must_be_known() -> None:
    class Careless(Mechanism):
        alpha: Annotated[float, Parameter]

    class Lost(Mechanism):
        price: "Annotated[Decimal, Transferred()]"

    with pytest.raises(InvalidInput, match=r"Parameter\(\) with brackets at Careless.alpha"):
        declarations(Careless)
    with pytest.raises(InvalidInput, match="annotation of Lost names 'Decimal'"):
        declarations(Lost)


class Cover(Enum):
    BOX = "box"
    CIRCLE = "circle"


class Tuned(Mechanism):
    cover: Annotated[Cover, Parameter()]
    share: Annotated[float, Parameter()]
    on: Annotated[bool, Parameter()]

    def __init__(self) -> None:
        self.cover, self.share, self.on = Cover.BOX, 0.5, False


@pytest.mark.parametrize(
    ("name", "value", "then"), [("cover", "circle", Cover.CIRCLE), ("share", 1, 1.0), ("on", True, True)]
)
def test_a_parameter_is_set_with_its_declared_type(name: str, value: Any, then: Any) -> None:
    tuned = Tuned()
    assert set_parameter(tuned, name, value)
    assert getattr(tuned, name) == then
    assert type(getattr(tuned, name)) is type(then)
    assert not set_parameter(tuned, name, value), "it has that value already"


@pytest.mark.parametrize(("name", "value"), [("cover", "round"), ("share", "much"), ("on", 1), ("share", True)])
def test_a_value_of_another_type_is_refused_and_changes_nothing(name: str, value: Any) -> None:
    tuned = Tuned()
    with pytest.raises(TransitionFailed, match=f"parameter '{name}' of Tuned cannot be"):
        set_parameter(tuned, name, value)
    assert vars(tuned) == vars(Tuned())


def test_an_unknown_parameter_is_refused_with_those_there_are() -> None:
    with pytest.raises(TransitionFailed, match=r"Tuned declares no parameter 'places' \(it has: cover, share, on\)"):
        set_parameter(Tuned(), "places", 1)


def test_a_setter_of_the_class_is_used_and_may_refuse() -> None:
    grid = Grid([], factor=5)
    set_parameter(grid, "factor", 10)
    assert grid.log == ["cut anew into 10"]
    with pytest.raises(TransitionFailed, match="at least one cell"):
        set_parameter(grid, "factor", 0)
    assert grid.factor == 10
