"""Who was not let in, by listener and by reason: few words for each, so that nobody's name becomes a label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from nearcast.errors import Denied, NearcastError, NotAuthenticated, QuotaExceeded

Reason = Literal["crowded", "credentials", "rules", "limit", "protocol", "failure"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


class Refusals:
    def __init__(self, listeners: Iterable[str]) -> None:
        """Listeners by their names (``mqtt``, ``mqtts``, ...): each has a count of every reason from the beginning."""
        self._counts: Final = {(listener, reason): 0 for listener in listeners for reason in REASONS}

    def add(self, listener: str, reason: Reason) -> None:
        self._counts[listener, reason] = self._counts.get((listener, reason), 0) + 1

    def add_error(self, listener: str, error: BaseException) -> None:
        self.add(listener, reason_of(error))

    def statistics(self) -> dict[str, dict[str, int]]:
        """By listener and reason."""
        found: dict[str, dict[str, int]] = {}
        for (listener, reason), count in self._counts.items():
            found.setdefault(listener, {})[reason] = count
        return found


def reason_of(error: BaseException) -> Reason:
    match error:
        case NotAuthenticated():
            return "credentials"
        case Denied():
            return "rules"
        case QuotaExceeded():
            return "limit"
        case NearcastError():
            return "protocol"
        case _:
            return "failure"
