"""What is wrong with a scenario file: everything at once, one line each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidScenario

Key = tuple[str, ...]
"""The way to a value: ``("workload", "2", "rate")`` is the rate of the second workload."""


def dotted(key: Key) -> str:
    """``workload[2].rate``: entries of lists are counted from 1."""
    text = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in key)
    return text.removeprefix(".")


@dataclass(frozen=True)
class Contradiction:
    """Values that are possible, but not together; shown at the first of their keys."""

    keys: tuple[str, ...]
    """Dotted, relative to the section that found it."""

    text: str


class Problems:
    """The problems found so far, in the order of the file's declaration."""

    def __init__(self) -> None:
        self.lines: Final[list[str]] = []
        self._doubtful: Final[set[Key]] = set()

    def add(self, key: Key, text: str) -> None:
        self.doubt(key)
        self.lines.append(f"{dotted(key)}: {text}" if key else text)

    def doubt(self, key: Key) -> None:
        """What stands there now is only a stand-in: nothing may be concluded from it."""
        self._doubtful.add(key)

    def contradict(self, key: Key, found: Iterable[Contradiction]) -> None:
        """Add the contradictions, but for those that follow from other problems."""
        for contradiction in found:
            keys = [(*key, *part.split(".")) for part in contradiction.keys]
            if not any(self._is_doubtful(key) for key in keys):
                self.add(keys[0], contradiction.text)

    def raise_all(self, file: str) -> None:
        if self.lines:
            raise InvalidScenario("\n".join(f"{file}: {line}" for line in self.lines))

    def _is_doubtful(self, key: Key) -> bool:
        return any(key[:length] in self._doubtful for length in range(len(key) + 1))
