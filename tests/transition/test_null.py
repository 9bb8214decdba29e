from abc import abstractmethod
from typing import Any

import pytest
from tests.transition.mechanisms import Located, Radial, Scheme

from nearcast.errors import InvalidInput
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import NullMechanism, is_null, neutral, null_of
from nearcast.transition.state import carry_over


class Rich(Mechanism):
    """An API with everything an API may have."""

    def __init__(self, needed: int) -> None:
        self.needed = needed

    @abstractmethod
    @neutral(set)
    def found(self, *, where: str) -> set[str]: ...

    @property
    @abstractmethod
    @neutral(lambda: 7)
    def size(self) -> int: ...

    @property
    @abstractmethod
    def name(self) -> str | None: ...

    @neutral(list)
    def listed(self) -> list[str]:
        return [str(self.needed)]

    def described(self) -> str:
        return f"{self.size} of them"

    def start_mechanism(self) -> None:
        self.needed += 1


def test_calls_on_the_null_mechanism_do_nothing_and_answer_what_was_declared() -> None:
    null: Any = null_of(Scheme)
    assert null.report("ada", 3) is None
    assert null.known() == ()


def test_there_is_one_null_mechanism_of_each_api() -> None:
    assert null_of(Scheme) is null_of(Scheme)
    assert null_of(Scheme) is not null_of(Rich)  # type: ignore[comparison-overlap]


def test_it_is_a_mechanism_of_its_api() -> None:
    null = null_of(Rich)
    assert isinstance(null, Rich)
    assert isinstance(null, NullMechanism)
    assert is_null(null)
    assert not is_null(Radial([]))


def test_every_answer_is_a_new_one() -> None:
    null = null_of(Rich)
    null.found(where="here").add("something")
    assert null.found(where="here") == set()


def test_properties_and_methods_with_a_body_are_neutral_too_if_declared_so() -> None:
    null = null_of(Rich)
    assert null.size == 7
    assert null.name is None
    assert null.listed() == []
    assert null.described() == "7 of them"  # its own, on top of what is neutral


def test_it_is_started_and_stopped_without_effect_whatever_the_api_does() -> None:
    null = null_of(Rich)
    null.start_mechanism()
    null.stop_mechanism()
    null.bootstrap()
    assert not hasattr(null, "needed")


def test_what_is_no_api_is_refused() -> None:
    with pytest.raises(InvalidInput, match="derived from Mechanism, not <class 'int'>"):
        null_of(int)  # type: ignore[type-var]


def test_nothing_is_left_in_a_null_mechanism_that_others_share() -> None:
    source, null = Radial([]), null_of(Located)  # an API that declares state itself
    source.report("a", 1)
    carry_over(source, null)
    assert not hasattr(null, "places")
