"""What does *not* lie behind a link: "nobody aged 61 there" (the document names it in 7.2, and leaves it at that).

Who gets messages in vain tells the neighbour from whom they come what nobody on its side meets: the constraint of theirs that was in
vain most often, or all of them together.  The neighbour leaves out every message that asks for that, or for that and more.

Nobody may be missed by it.  So it is said only by who knows it: of the contexts here as the network knows them, and of every other neighbour, by
what that one said or by such an absence of its own.  As soon as one of these could be otherwise, it is taken back, in the same numbered stream
of the link in which it was said (``hop_local``), and so on along the tree.  Another tree, or a stream that begins anew, begins without any.

It is said after so many messages in vain lately, twice as many each time that it had to be taken back lately, for so many at a
time; and what has saved no message for a while is given back, unless it is the reason of something that was said to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidInput, InvalidSettings, InvalidValue
from nearcast.matching.entries import EntryTable, Judge, Questions, questions
from nearcast.model.cql2 import parse
from nearcast.model.history import Context
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import And, Constant, Predicate
from nearcast.model.predicate_text import to_text
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.composites import Partial
from nearcast.overlay.routing.messages import Absence, Needless, Nobody, Somebody
from nearcast.overlay.routing.wire import Routed, asked
from nearcast.runtime.ports import Address

Literals = frozenset[Predicate]
"""Of a conjunct.  If nobody meets some of them, nobody meets all."""

_KEPT: Final = 3
"""Windows without use."""

_HARDEST: Final = 6
_NOT_AGAIN: Final = -(10**9)
"""Of what was looked into in this window, and is not so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsenceSettings:
    """The document gives no numbers."""

    window: float = 10.0
    """Seconds."""

    after: int = 3
    """Messages in vain; those of the last window count half, and so on."""

    most: int = 64
    """On each link, in each direction."""

    def __post_init__(self) -> None:
        if not self.window > 0 or self.after < 1 or self.most < 1:
            raise InvalidSettings(
                "a window needs a length; an absence is said after one message in vain, or more, and there is room for one"
            )


class Absences:
    """Of all links of a router.

    ``possible(neighbour, questions)``: whether what that neighbour said, apart from absences, leaves room for a match.
    """

    def __init__(
        self,
        settings: AbsenceSettings,
        judge: Judge,
        possible: Callable[[Address, Questions], bool],
        say: Callable[[Address, type[Absence], str], None],
    ) -> None:
        self.settings: Final = settings
        self._judge: Final = judge
        self._possible: Final = possible
        self._say: Final = say
        self._here: Final[EntryTable[Handle]] = EntryTable(judge)
        """What is registered here, as the network knows it: exact positions come and go unheard within a service area."""

        self._heard: dict[Address, dict[Literals, int]] = {}
        """By neighbour: for how many windows nothing was left out because of it."""

        self._told: dict[Address, dict[Literals, Questions]] = {}
        self._in_vain: dict[Address, Counter[Literals]] = {}
        self._taken_back: Final[Counter[Literals]] = Counter()

    @property
    def heard(self) -> int:
        return sum(map(len, self._heard.values()))

    @property
    def told(self) -> int:
        return sum(map(len, self._told.values()))

    # Messages

    def excluded(self, neighbour: Address, message: Routed) -> frozenset[int]:
        """Which of the conjuncts nobody there meets."""
        heard = self._heard.get(neighbour)
        if not heard:
            return frozenset()
        found = set()
        for number, literals in enumerate(literals_of(message)):
            for absent in heard:
                if absent <= literals:
                    heard[absent] = 0
                    found.add(number)
                    break
        return frozenset(found)

    def came_in_vain(self, neighbour: Address, message: Routed) -> None:
        told, counts = self._told.get(neighbour), self._in_vain.get(neighbour)
        if told is None or counts is None:
            return
        if len(counts) > 16 * self.settings.most:
            counts.clear()
        for literals in literals_of(message):
            if any(absent <= literals for absent in told):
                continue  # it is on its way
            for absent in _parts(literals):
                counts[absent] += 1
                if counts[absent] >= self._needed(absent) and len(told) < self.settings.most:
                    if self._say_nobody(neighbour, absent):
                        break
                    counts[absent] = _NOT_AGAIN

    def _needed(self, absent: Literals) -> int:
        return int(self.settings.after * 2 ** min(self._taken_back[absent], _HARDEST))

    def _say_nobody(self, neighbour: Address, absent: Literals) -> bool:
        text = _text(absent)
        if text is None:
            return False
        nobody = questions((tuple(absent),))
        if self._here.meets(nobody) or any(
            other != neighbour and self._could_be(other, absent, nobody) for other in self._told
        ):
            return False
        self._told[neighbour][absent] = nobody
        self._say(neighbour, Nobody, text)
        return True

    def _could_be(self, neighbour: Address, literals: Literals, asked_for: Questions) -> bool:
        """Whether somebody who meets them could be there."""
        if any(absent <= literals for absent in self._heard[neighbour]):
            return False
        return self._possible(neighbour, asked_for)

    # What could be otherwise now

    def local(self, handle: Handle, context: Context | None) -> None:
        if context is None:
            self._here.remove(handle)
            return
        self._here.put(handle, 0, context)
        self._take_back(None, lambda absent, _: self._meets((context, frozenset()), absent))

    def changed(self, neighbour: Address, partials: Iterable[Partial] | None = None) -> None:
        """What is known of that neighbour's side; ``partials``: it is no less, and these are new."""
        new = None if partials is None else list(partials)
        self._take_back(
            neighbour,
            lambda absent, asked_for: (
                (new is None or any(self._meets(partial, absent) for partial in new))
                and self._could_be(neighbour, absent, asked_for)
            ),
        )

    def _meets(self, partial: Partial, literals: Literals) -> bool:
        context, optional = partial
        return all(self._judge(literal, context, optional) for literal in literals)

    def _take_back(self, behind: Address | None, otherwise: Callable[[Literals, Questions], bool]) -> None:
        for neighbour, told in self._told.items():
            if neighbour != behind:
                for absent in [absent for absent, asked_for in told.items() if otherwise(absent, asked_for)]:
                    self._taken_back[absent] += 1
                    self._say_somebody(neighbour, absent)

    def _say_somebody(self, neighbour: Address, absent: Literals) -> None:
        del self._told[neighbour][absent]
        text = _text(absent)
        assert text is not None, "it was said"
        self._say(neighbour, Somebody, text)

    # What neighbours say

    def hear(self, neighbour: Address, message: Absence) -> None:
        absent = literals_in(message)
        match message:
            case Nobody():
                if len(self._heard[neighbour]) < self.settings.most:
                    self._heard[neighbour][absent] = 0
            case Somebody():
                if self._heard[neighbour].pop(absent, None) is not None:
                    self.changed(neighbour)
            case Needless():
                # It may have got it once more meanwhile: so it is taken back in order.
                if absent in self._told[neighbour]:
                    self._say_somebody(neighbour, absent)

    def window_ends(self) -> None:
        for counts in self._in_vain.values():
            for absent, times in list(counts.items()):
                if times > 1:
                    counts[absent] = times // 2
                else:
                    del counts[absent]
        for absent, times in list(self._taken_back.items()):
            if times > 1:
                self._taken_back[absent] = times - 1
            else:
                del self._taken_back[absent]
        for neighbour, heard in self._heard.items():
            for absent in list(heard):
                heard[absent] += 1
                if heard[absent] > _KEPT and not self._is_reason(neighbour, absent):
                    del heard[absent]
                    text = _text(absent)
                    assert text is not None, "it was read"
                    self._say(neighbour, Needless, text)

    def _is_reason(self, neighbour: Address, absent: Literals) -> bool:
        return any(absent <= other for to, told in self._told.items() if to != neighbour for other in told)

    # Streams begin anew

    def open(self, neighbours: Iterable[Address]) -> None:
        """In another tree."""
        names = list(neighbours)
        self._heard = {neighbour: {} for neighbour in names}
        self._told = {neighbour: {} for neighbour in names}
        self._in_vain = {neighbour: Counter() for neighbour in names}

    def forget_heard(self, neighbour: Address) -> None:
        """What that neighbour said; afterwards ``changed`` has to be called."""
        self._heard[neighbour].clear()

    def forget_told(self, neighbour: Address) -> None:
        """It is told everything, and that is the end of what it was told before."""
        self._told[neighbour].clear()


def literals_of(message: Routed) -> list[Literals]:
    """By conjunct, in the order of ``asked``; kept with the message."""
    found: list[Literals] | None = message.__dict__.get("literals")
    if found is None:
        found = message.__dict__["literals"] = [
            frozenset(question.literal for question in conjunct) for conjunct in asked(message)
        ]
    return found


def literals_in(message: Absence) -> Literals:
    found: Literals | None = message.__dict__.get("literals")
    if found is None:
        conjuncts = disjunctive_normal_form(parse(message.conjunct))
        if len(conjuncts) != 1:
            raise InvalidValue(f"nobody, of whom? {message.conjunct!r:.60} is no conjunction")
        found = message.__dict__["literals"] = frozenset(conjuncts[0])
    return found


def _parts(literals: Literals) -> list[Literals]:
    """What may be said to be absent: everybody, whoever meets one of them, whoever meets all."""
    alone = [frozenset((literal,)) for literal in sorted(literals, key=to_text)]
    return [frozenset(), *alone] + ([literals] if len(literals) > 1 else [])


def _text(literals: Literals) -> str | None:
    """As the wire has it; none if that cannot be read again."""
    terms = tuple(sorted(literals, key=to_text))
    text = to_text(Constant(True) if not terms else terms[0] if len(terms) == 1 else And(terms))
    try:
        conjuncts = disjunctive_normal_form(parse(text))
    except InvalidInput:
        return None
    return text if [frozenset(conjunct) for conjunct in conjuncts] == [literals] else None
