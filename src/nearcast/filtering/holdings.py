"""How many subscriptions of one sort there are, without asking everybody at each event."""

from __future__ import annotations


class Holdings:
    """Subscriptions of one sort by client, and their sum."""

    def __init__(self) -> None:
        self.total = 0
        self._of: dict[str, int] = {}

    def add(self, client: str, number: int) -> None:
        if number:
            self.total += number
            self._of[client] = self._of.get(client, 0) + number

    def forget(self, client: str) -> None:
        self.total -= self._of.pop(client, 0)
