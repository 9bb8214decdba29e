"""What scenarios leave behind: nothing."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from pathlib import Path

from tests.broker.talker import Talker, run

from nearcast.broker.access.certificates import make_certificate

SLOWNESS = 0.2
"""Seconds that the other side takes for its last word."""


def test_a_scenario_ends_with_its_sockets_also_if_the_other_side_is_slow_to_say_goodbye(tmp_path: Path) -> None:
    """Else the socket is found, and complained of, in whichever test runs when garbage is collected."""
    certificate, key = tmp_path / "mine.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    trusting.check_hostname = False
    sockets: list[socket.socket] = []

    def answer(listener: socket.socket) -> None:
        with serving.wrap_socket(listener.accept()[0], server_side=True, suppress_ragged_eofs=True) as connection:
            assert connection.recv(1) == b""
            time.sleep(SLOWNESS)

    async def scenario() -> None:
        address = listener.getsockname()
        reader, writer = await asyncio.open_connection(*address, ssl=trusting)
        sockets.append(writer.get_extra_info("socket"))
        Talker(reader, writer, 5)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = threading.Thread(target=answer, args=(listener,), daemon=True)
        other.start()
        run(scenario())
        assert sockets[0].fileno() == -1
        other.join()
