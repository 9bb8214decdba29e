"""The trace that a message belongs to, as its user properties say it (W3C Trace Context: ``traceparent``, ``tracestate``).

What comes from outside may be anything: a context that does not keep to the rules is none, and nobody is told off for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
SAMPLED: Final = 0x01

_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER: Final = re.compile(
    r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MOST_MEMBERS: Final = 32
_LONGEST_STATE: Final = 512

Properties = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Which trace, and which span of it is the parent of what is done next."""

    trace: int
    span: int
    sampled: bool
    state: str = ""
    """What tracing systems say to themselves; passed on as it is."""

    def properties(self) -> Properties:
        own = [(TRACEPARENT, f"00-{self.trace:032x}-{self.span:016x}-{int(self.sampled):02x}")]
        return [*own, (TRACESTATE, self.state)] if self.state else own


def trace_context(properties: Iterable[tuple[str, str]]) -> TraceContext | None:
    """The context among the properties; none if there is none, or two, or one that cannot be."""
    parents, states = [], []
    for name, value in properties:
        if name == TRACEPARENT:
            parents.append(value)
        elif name == TRACESTATE:
            states.append(value)
    found = _PARENT.fullmatch(parents[0]) if len(parents) == 1 else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    context = TraceContext(int(trace, 16), int(span, 16), bool(int(flags, 16) & SAMPLED), _state(states))
    return context if context.trace and context.span else None


def with_context(properties: Iterable[tuple[str, str]], context: TraceContext) -> Properties:
    """The same properties with this context instead of theirs."""
    return [*(pair for pair in properties if pair[0] not in {TRACEPARENT, TRACESTATE}), *context.properties()]


def _state(texts: list[str]) -> str:
    """One that is too long or cannot be read is left out: the trace goes on without it."""
    members = [member.strip(" \t") for text in texts for member in text.split(",")]
    members = [member for member in members if member]
    keys = {member.partition("=")[0] for member in members}
    state = ",".join(members)
    good = len(keys) == len(members) <= _MOST_MEMBERS and len(state) <= _LONGEST_STATE
    return state if good and all(map(_MEMBER.fullmatch, members)) else ""
