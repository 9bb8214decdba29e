"""Messages of every kind with whatever their fields can hold, likely and absurd."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from nearcast.crowdstore.data_centric.messages import KINDS
from nearcast.runtime.messages import Message

_INTEGERS = st.one_of(
    st.integers(0, 3),
    st.sampled_from([-1, 7, 64, 1_023, 2**31, 2**31 + 1, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64 - 1]),
    st.integers(0, 2**30),
)
_TEXTS = st.one_of(
    st.sampled_from(["", "a", "b", "n0", "n1", "n4", "nobody", "x\0y", "key-" + "0" * 32, "o", "0.1"]),
    st.text(max_size=5),
    st.sampled_from(["long " * 60, "\N{SNOWMAN}" * 400]),
)
_BYTES = st.one_of(st.binary(max_size=20), st.sampled_from([bytes(1_024), bytes(1_401)]))


@cache
def values(kind: Any) -> st.SearchStrategy[Any]:
    """All that a type can hold, in small numbers; bounds do not count, because liars keep to none."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return values(arguments[0])
    if origin in (Union, UnionType):
        return st.one_of(*map(values, arguments))
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return st.lists(values(arguments[0]), max_size=4).map(tuple)
        return st.tuples(*map(values, arguments))
    if kind is NoneType:
        return st.none()
    if kind is bool:
        return st.booleans()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        return st.builds(kind, *(values(hints[name]) for name in kind.__struct_fields__))
    found: dict[Any, st.SearchStrategy[Any]] = {int: _INTEGERS, str: _TEXTS, bytes: _BYTES}
    return found[kind] if kind in found else st.sampled_from(list(kind))  # an enumeration


def messages() -> st.SearchStrategy[Message]:
    return st.one_of(*map(values, KINDS))
