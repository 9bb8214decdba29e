"""New settings for a broker that runs: what can change at once does, what cannot is named, and nobody is disconnected.

Everything that may be wrong (the file, the users, the rules, certificates) is read and tried before anything changes: settings
that cannot be leave all as it was.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from nearcast.broker.access import Access
from nearcast.broker.access.certificates import ServerCertificate, server_certificate, server_context
from nearcast.broker.logs import set_up
from nearcast.broker.settings import BrokerSettings
from nearcast.errors import InvalidInput
from nearcast.planning.ruled import SchemeRule

if TYPE_CHECKING:
    from nearcast.broker.core import Broker

log: Final = logging.getLogger(__name__)
_AT_ONCE: Final = (
    "access.",
    "limits.",
    "log.",
    "journal.retention_age",
    "journal.retention_size",
    "schemes.rule",
    "tls.certificate",
    "tls.key",
    "tls.auto",
)
"""Beginnings of the keys that can change while the broker runs."""

_NOT_AT_ONCE: Final = frozenset(
    {"limits.packet", "limits.half_open", "limits.request_time"}
)  # clients were told it when they connected
_REFUSED: Final = "the settings were not reloaded, and nothing has changed"
_SESSIONS_AT_ONCE: Final = 200
"""Looked through before others have their turn."""


class Reloaded(msgspec.Struct, frozen=True):
    """What came of it."""

    applied: tuple[str, ...]
    """Keys that hold from now on."""

    restart_needed: tuple[str, ...]
    """Keys of the file that will hold after a restart, and until then are as they were."""

    certificates: tuple[str, ...]
    """Fingerprints (SHA-256) of the certificates that new connections are shown."""

    withdrawn: int
    """Subscriptions that ended, since the rules do not allow them any more."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Tried, and nothing has changed yet."""

    settings: BrokerSettings
    applied: tuple[str, ...]
    restart_needed: tuple[str, ...]
    access: Access
    rules: tuple[SchemeRule, ...]
    certificates: tuple[ServerCertificate, ...]


class Reloading:
    """One for each server; ``read`` reads the settings anew, as they were read at the start."""

    def __init__(
        self,
        broker: Broker,
        read: Callable[[], BrokerSettings],
        contexts: Sequence[tuple[str, ssl.SSLContext]],
    ) -> None:
        self._broker: Final = broker
        self._read: Final = read
        self._contexts: Final = contexts
        """Of the listeners with TLS: where they listen, and what they show."""

        self._one_at_a_time: Final = asyncio.Lock()

    async def reload(self) -> Reloaded:
        """``InvalidInput`` if the settings cannot be; then nothing has changed."""
        async with self._one_at_a_time:
            try:
                prepared = await asyncio.to_thread(self._prepare)
                if "schemes.rule" in prepared.applied:
                    self._broker.scheming.live.change_rules(prepared.rules)  # refuses before it changes anything
            except InvalidInput as error:
                log.error("%s (nearcast doctor says it in full): %s", _REFUSED, error)  # noqa: TRY400 - its words say all
                raise
            withdrawn = await self._carry_out(prepared)
            done = Reloaded(
                prepared.applied,
                prepared.restart_needed,
                tuple(each.fingerprint for each in prepared.certificates),
                withdrawn,
            )
        log.info("the settings were reloaded; changed: %s", ", ".join(done.applied) or "nothing")
        if done.restart_needed:
            log.warning("only after a restart: %s", ", ".join(done.restart_needed))
        if withdrawn:
            log.warning("%d subscriptions have ended: the rules do not allow them any more", withdrawn)
        return done

    def _prepare(self) -> _Prepared:
        running, wanted = self._broker.settings, self._read()
        changed = [key for key, before, after in _keys(running, wanted) if before != after]
        applied = tuple(key for key in changed if key.startswith(_AT_ONCE) and key not in _NOT_AT_ONCE)
        settings = replace(
            running,
            access=wanted.access,
            limits=replace(
                wanted.limits,
                packet=running.limits.packet,
                half_open=running.limits.half_open,
                request_time=running.limits.request_time,
            ),
            log=wanted.log,
            journal=replace(
                running.journal,
                retention_age=wanted.journal.retention_age,
                retention_size=wanted.journal.retention_size,
            ),
            schemes=replace(running.schemes, rules=wanted.schemes.rules),
            tls=replace(running.tls, certificate=wanted.tls.certificate, key=wanted.tls.key, auto=wanted.tls.auto),
        )
        certificates = []
        for host, _ in self._contexts:
            certificates.append(server_certificate(settings.tls, settings.data, (host,)))
            server_context(certificates[-1], settings.tls.client_ca)  # a certificate without its key is refused here
        return _Prepared(
            settings,
            applied,
            tuple(key for key in changed if key not in applied),
            Access(settings, self._broker.clock.now),
            settings.schemes.transition_rules(),
            tuple(certificates),
        )

    async def _carry_out(self, prepared: _Prepared) -> int:
        broker, settings = self._broker, prepared.settings
        broker.settings = settings
        set_up(settings.log)
        broker.journal.keep(settings.journal.retention_age, settings.journal.retention_size)
        for (_, context), certificate in zip(self._contexts, prepared.certificates, strict=True):
            context.load_cert_chain(certificate.certificate, certificate.key)
        limits_changed = any(key.startswith("limits.") for key in prepared.applied)
        if limits_changed:
            broker.services.quotas.change(settings.limits)
            broker.services.admission.change(settings.limits)
            broker.services.callers.change(settings.limits)
            broker.subscribing.most = settings.limits.subscriptions_per_client
            broker.subscribing.most_bytes = int(settings.limits.subscription_bytes_per_client)
        broker.access.adopt(prepared.access)
        for number, conversation in enumerate(list(broker.services.open), 1):
            conversation.judge_again(limits_changed=limits_changed)
            if number % _SESSIONS_AT_ONCE == 0:
                await asyncio.sleep(0)
        withdrawn = 0
        for number, session in enumerate(list(broker.sessions), 1):
            if session.alive:
                withdrawn += broker.lifecycle.judge_again(session, broker.access)
            if number % _SESSIONS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return withdrawn


def _keys(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Of every key: as it is written in a file, what it was and what it is to be."""
    for name, key in zip(before.__struct_fields__, before.__struct_encode_fields__, strict=True):
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, msgspec.Struct) and type(old) is type(new):
            yield from _keys(old, new, f"{path}{key}.")
        else:
            yield f"{path}{key}", old, new
