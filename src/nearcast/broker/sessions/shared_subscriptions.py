"""Shared subscriptions (MQTT 5, 4.8.2): a group gets every message once, whichever member takes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearcast.broker.sessions.session import Held, Session


@dataclass(slots=True, eq=False)
class SharedGroup:
    """The members of one group and filter, in the order of their turns."""

    key: str
    members: dict[str, tuple[Session, Held]] = field(default_factory=dict)

    def join(self, session: Session, held: Held) -> None:
        self.members[session.client] = (session, held)

    def leave(self, client: str) -> bool:
        """Whether the group is empty now."""
        self.members.pop(client, None)
        return not self.members

    def choose(self) -> tuple[Session, Held] | None:
        """Whose turn it is: whoever is there and has room; then whoever is there; then whoever will come back."""
        best: tuple[int, str] | None = None
        for client, (session, _) in self.members.items():
            rank = 2 if session.connection is None else int(session.connection.congested or bool(session.queue))
            if rank == 2 and not session.durable:
                continue
            if best is None or rank < best[0]:
                best = rank, client
            if rank == 0:
                break
        if best is None:
            return None
        chosen = self.members.pop(best[1])
        self.members[best[1]] = chosen  # to the end of the line
        return chosen
