"""``nearcast serve``: listeners, signals, readiness."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from nearcast.broker.access.certificates import server_certificate, server_context
from nearcast.broker.connections.websocket import WebSocketConnection
from nearcast.broker.core import Broker
from nearcast.broker.settings import BrokerSettings, Listener
from nearcast.broker.upkeep.reload import Reloading
from nearcast.errors import NearcastError, SetupError
from nearcast.model.time import MICROSECONDS

if TYPE_CHECKING:
    from nearcast.broker.http.app import More
    from nearcast.broker.http.listening import HttpServer

log: Final = logging.getLogger(__name__)
Read = Callable[[], BrokerSettings]
BACKLOG: Final = 4_096
GARBAGE: Final = 20_000
"""Objects that may be new before cycles are looked for among them."""

GOODBYES: Final = 25
"""Looks, a fiftieth of a second apart, whether all clients have gone."""


class Server:
    """The broker and its listeners."""

    def __init__(self, settings: BrokerSettings, more: More | None = None, read: Read | None = None) -> None:
        """``more``: further routes of the HTTP listener, such as the dashboard's; ``read``: reads the settings anew."""
        self.settings: Final = settings
        self._more: Final = more
        self._read: Final = read
        self._contexts: Final[list[tuple[str, ssl.SSLContext]]] = []
        self.broker: Broker
        self.addresses: Final[dict[str, tuple[str, int]]] = {}
        """Of each protocol (``mqtt``, ``mqtts``, ``websocket``, ...), where it is listened to."""

        self._servers: list[asyncio.Server] = []
        self._http: HttpServer | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.broker = Broker(self.settings, loop)
        self.broker.load()
        try:
            if self.broker.federation is not None:
                self.addresses["federation"] = await self.broker.federation.start()
            for listener in self.settings.listen.listeners():
                if listener.protocol == "http":
                    await self._serve_http(listener)
                else:
                    await self._listen(loop, listener)
        except BaseException:
            await self.stop()
            raise
        if self._read is not None:
            self.broker.reload = Reloading(self.broker, self._read, self._contexts).reload
        self.broker.run()

    async def _listen(self, loop: asyncio.AbstractEventLoop, listener: Listener) -> None:
        context = self._context(listener)
        broker = self.broker

        def make() -> asyncio.Protocol:
            if listener.protocol == "websocket":
                return WebSocketConnection(broker.terms, tls=listener.tls)
            return broker.connection(tls=listener.tls)

        name = listener.name
        try:
            server = await loop.create_server(
                make,
                listener.host,
                listener.port,
                ssl=context,
                backlog=BACKLOG,
                ssl_handshake_timeout=None
                if context is None
                else broker.settings.session.connect_timeout / MICROSECONDS,
            )
        except OSError as error:
            raise SetupError(
                f"cannot listen on {listener.host}:{listener.port} ({name}): {error.strerror or error}; "
                "is another broker running? Choose another port (--port)"
            ) from None
        self._servers.append(server)
        self.addresses[name] = server.sockets[0].getsockname()[:2]
        log.info("listening for %s on %s:%s", name, *self.addresses[name])

    async def _serve_http(self, listener: Listener) -> None:
        # A third of a second to import, which nobody waits for who does without.
        from nearcast.broker.http.listening import HttpServer

        self._http = HttpServer(self.broker, listener.host, listener.port, self._context(listener), self._more)
        await self._http.start()
        name = listener.name
        self.addresses[name] = self._http.address
        log.info("listening for %s on %s:%s", name, *self.addresses[name])

    def _context(self, listener: Listener) -> ssl.SSLContext | None:
        if not listener.tls:
            return None
        tls = self.settings.tls
        context = server_context(server_certificate(tls, self.settings.data, (listener.host,)), tls.client_ca)
        self._contexts.append((listener.host, context))
        return context

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.stop()
            self._http = None
        for server in self._servers:
            server.close()
        if self.broker.federation is not None:
            await self.broker.federation.stop()
        self.broker.close()
        await self._see_off()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    async def _see_off(self) -> None:
        """What was said last goes out; who does not take it is not waited for."""
        conversations = self.broker.services.open
        for _ in range(GOODBYES):
            await asyncio.sleep(0)
            if not conversations:
                return
            await asyncio.sleep(0.02)
        for conversation in list(conversations):
            conversation.abandon()
        await asyncio.sleep(0)


async def serve(
    settings: BrokerSettings, ready: Callable[[Server], None], more: More | None = None, read: Read | None = None
) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP has the settings read anew."""
    _allow_files()
    server = Server(settings, more, read)
    await server.start()
    _collect_rarely()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = loop.create_task(_reload(server.broker))
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, reload)
    ready(server)
    try:
        await stopping.wait()
    finally:
        await server.stop()


async def _reload(broker: Broker) -> None:
    if broker.reload is None:
        return
    try:
        await broker.reload()
    except NearcastError:
        return  # it has said so
    except Exception:
        log.exception("the settings could not be reloaded")


def _allow_files() -> None:
    """As many open files, and so connections, as this process may have: by default many systems give it 1,024 of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _collect_rarely() -> None:
    """What there is now stays for good, and what packets and connections leave behind goes without the garbage collector's help: cycles
    are rare.  Looked for after every 700 objects, as it is by default, they would take a tenth of the time of a busy broker.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
