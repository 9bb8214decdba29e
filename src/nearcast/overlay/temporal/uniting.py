"""What is known of one message: when it held of whom, and since when it is for them.

Spans of one aspect of an entity are united over all its identities and all nodes, and only the whole interval is judged.  The document
calls what lies between two borders a context of its own; then somebody who walks from one access network into the next was nowhere
for long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nearcast.model.event import Event
from nearcast.model.temporal import WIDENING
from nearcast.model.time import LARGEST, Instant
from nearcast.overlay.temporal.archive import joined
from nearcast.overlay.temporal.messages import Span, Vid

_Kind = tuple[str, int]
"""An aspect, and the number of a conjunct."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one entity, as of now."""

    aspects: tuple[str, ...]
    """Those that the message is for."""

    next: Instant | None
    """When it may be for another one, if nothing changes."""


class Spans:
    """Of one message and one entity."""

    def __init__(self) -> None:
        self._spans: Final[dict[_Kind, dict[tuple[Vid, Instant], Instant | None]]] = {}

    def add(self, aspect: str, span: Span) -> None:
        """A span that has ended stays so, whichever word comes first."""
        spans = self._spans.setdefault((aspect, span.conjunct), {})
        key = span.vid, span.start
        if span.end is not None and span.end <= span.start:  # two reports at one instant: what had begun was taken back
            if spans.pop(key, span.start) == span.start:
                spans[key] = (
                    span.start
                )  # without length: the word of its beginning, which this one has overtaken, undoes it
            return
        if span.end is None and spans.get(key) == span.start:
            del spans[key]
            return
        # The index unites pieces otherwise, and may tell of the same span under another start: it ends with it.
        end = span.end
        for (vid, start), ended in list(spans.items()):
            if vid == span.vid and span.end is not None and ended is None and start < span.end:
                spans[vid, start] = span.end
            elif vid == span.vid and span.end is None and ended is not None and max(start, span.start) < ended:
                end = ended if end is None else max(end, ended)
        before = spans.get(key)
        spans[key] = end if before is None else before if end is None else max(before, end)

    def intervals(self) -> Iterator[tuple[str, Instant, Instant | None]]:
        """The longest ones, by aspect and conjunct."""
        for (aspect, _), spans in self._spans.items():
            pieces = sorted(
                (0, start, LARGEST if end is None else end) for (_, start), end in spans.items() if end != start
            )
            for _, start, end in joined(pieces):
                yield aspect, start, None if end == LARGEST else end

    def judge(self, event: Event, now: Instant, settling: int) -> Verdict:
        """Whether the predicate is true of an interval.

        Of one that has not ended it is known to be so only when a word of its end would have come, ``settling`` microseconds later, and of
        one that has, when it would be known that it went on elsewhere.  What was so at publication is known, because who answered
        was asked after it.
        """
        assert event.when is not None
        aspects: dict[str, None] = {}
        following: Instant | None = None
        for aspect, start, end in self.intervals():
            decided = event.when.decided_at(start, end, now if end is not None else None)
            if decided is None or not _exists(event, max(decided, event.published)):
                continue
            if not _beyond_doubt(event, decided, start, end) and decided + settling > now:
                due = decided + settling
                following = due if following is None else min(following, due)
            else:
                aspects[aspect] = None
        return Verdict(tuple(aspects), following)


def _beyond_doubt(event: Event, decided: Instant, start: Instant, end: Instant | None) -> bool:
    """Whatever else may be heard of that time."""
    assert event.when is not None
    widening = event.when.relation in WIDENING
    return decided <= event.published or (widening and (end is not None or decided == start))


def _exists(event: Event, moment: Instant) -> bool:
    return event.lifetime is None or moment < event.published + event.lifetime
