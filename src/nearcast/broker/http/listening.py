"""The HTTP server, on the broker's own loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import uvicorn

from nearcast.broker.core import Broker
from nearcast.broker.http.app import More, application
from nearcast.broker.http.guarded import guarded_http, guarded_websocket
from nearcast.errors import SetupError

LARGEST_WORD: Final = 64 * 1024
"""Bytes of a message on a WebSocket: only answers are long."""


class _Quiet(uvicorn.Server):
    """Signals are the broker's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    def __init__(
        self, broker: Broker, host: str, port: int, context: ssl.SSLContext | None, more: More | None = None
    ) -> None:
        self._socket: Final = _bound(host, port)
        config = uvicorn.Config(
            application(broker, more),
            log_config=None,
            access_log=False,
            lifespan="off",
            # Who says on whose behalf it asks is believed only if the settings name it: else anybody on this machine could be anybody.
            proxy_headers=bool(broker.settings.listen.proxies),
            forwarded_allow_ips=list(broker.settings.listen.proxies),
            http=guarded_http(broker),
            timeout_graceful_shutdown=2,
            ws_max_size=LARGEST_WORD,
            # Squeezing every picture for every viewer would cost the broker more than the bytes it saves.
            ws_per_message_deflate=False,
        )
        config.load()
        if config.ws_protocol_class is not None:
            config.ws_protocol_class = guarded_websocket(broker, config.ws_protocol_class)
        if context is not None:
            config.ssl = context
        self._server: Final = _Quiet(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int]:
        name = self._socket.getsockname()
        return str(name[0]), int(name[1])

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._server.serve([self._socket]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - the library has nothing to wait for
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SetupError(
            f"cannot listen on {host}:{port} (http): {error.strerror or error}; is another broker running? "
            "Choose another port with --http-port"
        ) from None
    return listener
