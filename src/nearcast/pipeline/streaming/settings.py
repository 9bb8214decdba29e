"""What may be said about a match on streams."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import InvalidSettings


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Seconds are those of the records, not of the machine."""

    delay: float = 0.1
    """So much later than the newest row may another one come and still count where it belongs: the *watermark* is the newest
    instant less this.  An event is answered as soon as the watermark has passed it.  Streams of a live broker are read one after the
    other, so that some are ahead of others by some hundredths of a second."""

    parts: int = 1
    """The state is kept so many times, and each event goes to one of them.  Dealing events out, rather than cutting the map,
    leaves no hot cells, and nobody has to notice that a client left a block; but every part takes in all reports, and is another
    task with a state of its own, which costs more than the match of some ten thousand events.  So more than one only pays where the
    match itself takes most of a batch and there are cores to spare: events with very many receivers, or costly conditions."""

    by_clock: bool = False
    """The watermark follows the ``clock`` alone, and not the newest row: for streams that are not in step, such as the topics of
    Kafka, of which each has a backlog of its own."""

    forget_after: float | None = None
    """A client of whom nothing was heard for so long is forgotten, with all that it holds; ``None``: never.  Not at once:
    when the state is written anew."""

    def __post_init__(self) -> None:
        if not self.delay >= 0.0:
            raise InvalidSettings(f"delay is a number of seconds from 0 on, not {self.delay!r}")
        if self.parts < 1:
            raise InvalidSettings(f"parts must be at least 1, not {self.parts!r}")
        if self.forget_after is not None and not self.forget_after > 0.0:
            raise InvalidSettings(f"forget_after is a positive number of seconds, or None, not {self.forget_after!r}")
