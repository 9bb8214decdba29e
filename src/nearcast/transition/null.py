"""The null mechanism: what stands in a proxy when nothing runs, so that calls stay valid (BYPASS.KOM 4.1, 5.2.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar, cast

from nearcast.errors import InvalidInput
from nearcast.transition.mechanism import Mechanism

M = TypeVar("M", bound=Mechanism)
F = TypeVar("F", bound=Callable[..., Any])

Api = Callable[..., M]
"""The abstract class of a kind of mechanism.  Not ``type[M]``: there, mypy accepts no abstract class."""

_NEUTRAL: Final = "__neutral__"
_LIFECYCLE: Final = ("start_mechanism", "stop_mechanism", "bootstrap", "members_joined", "members_left")


class NullMechanism(Mechanism):
    """Root of all null mechanisms; as the source or target of a custom transition, it stands for any mechanism."""


def neutral(factory: Callable[[], Any]) -> Callable[[F], F]:
    """Declare what a method of an API answers when nothing runs: ``@neutral(tuple)``.  Without it: ``None``."""

    def declare(method: F) -> F:
        setattr(method, _NEUTRAL, factory)
        return method

    return declare


def null_of(api: Api[M]) -> M:
    """The one null mechanism of that API."""
    if not (isinstance(api, type) and issubclass(api, Mechanism)):
        raise InvalidInput(f"an API is a class derived from Mechanism, not {api!r}")
    return cast("M", _null_of(api))


def is_null(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, NullMechanism)


@cache
def _null_of(api: type[Mechanism]) -> Mechanism:
    # Not the API's own: there is nothing to set up.
    members: dict[str, Any] = {"__init__": _doing_nothing(None)} | {name: _doing_nothing(None) for name in _LIFECYCLE}
    for name in dir(api):
        member = _member(api, name)
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        factory = getattr(function, _NEUTRAL, None)
        if factory is not None or getattr(member, "__isabstractmethod__", False):
            nothing = _doing_nothing(factory)
            members[name] = property(nothing) if isinstance(member, property) else nothing
    null = type(f"Null{api.__name__}", (NullMechanism, api), members)
    return cast("Mechanism", null())


def _member(api: type, name: str) -> Any:
    """As the class declares it, not as looking it up would bind it."""
    return next((vars(base)[name] for base in api.__mro__ if name in vars(base)), None)


def _doing_nothing(factory: Callable[[], Any] | None) -> Callable[..., Any]:
    def nothing(_self: Any, *_args: Any, **_kwargs: Any) -> Any:
        return factory() if factory else None

    return nothing
