"""Contexts of the clients of this broker, as the overlay is told of them: of whoever may get what is addressed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.presence import Presence
from nearcast.broker.publishing.router import Router
from nearcast.broker.sessions.session import Session
from nearcast.errors import InvalidInput
from nearcast.model.area import Box
from nearcast.model.history import POSITION, Context
from nearcast.overlay.routing.messages import Handle
from nearcast.overlay.routing.router import Router as Overlay

log: Final = logging.getLogger(__name__)
ANYWHERE: Final = Box(-180.0, -90.0, 180.0, 90.0)
"""The position of a client of whom only a filter scheme knows more or less where it is."""


@dataclass(slots=True, eq=False)
class ContextReports:
    sessions: Mapping[str, Session]
    presence: Presence
    router: Router
    overlay: Overlay
    soon: Callable[[Callable[[], None]], object]
    left: Callable[[Session], bool]
    """Whether the client is with another broker, and that one is known to answer for it."""

    _handles: dict[str, dict[str, Handle]] = field(default_factory=dict)
    _changed: dict[str, None] = field(default_factory=dict)

    def changed(self, client: str) -> None:
        """Something of that client may be another than the overlay knows."""
        if not self._changed:
            self.soon(self.flush)
        self._changed[client] = None

    def flush(self) -> None:
        changed, self._changed = self._changed, {}
        for client in changed:
            self._report(client)

    def _report(self, client: str) -> None:
        wanted, handles = self._wanted(client), self._handles.get(client, {})
        for name in [name for name in handles if name not in wanted]:
            self.overlay.remove(handles.pop(name))
        for name, context in wanted.items():
            try:
                if name in handles:
                    self.overlay.update(handles[name], context)
                else:
                    handles[name] = self.overlay.register(context)
            except InvalidInput as error:
                log.warning("other brokers cannot be told of context %r of client %r: %s", name, client, error)
        if handles:
            self._handles[client] = handles
        else:
            self._handles.pop(client, None)

    def _wanted(self, client: str) -> dict[str, Context]:
        session = self.sessions.get(client)
        if session is None or self.left(session) or not (session.held or client in self.presence.accepting):
            return {}
        contexts = dict(self.presence.known(client).seen())
        if self.router.is_located(client):
            return contexts
        return {name: {POSITION: ANYWHERE, **context} for name, context in contexts.items()}
