"""One connection to a broker: bytes over TCP, TLS or WebSocket, packets out of them."""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import mqtt5

from nearcast.client.address import Address
from nearcast.client.protocol import ClientProtocol
from nearcast.client.refusals import connection_refused
from nearcast.errors import ConnectionFailed, NearcastError, ProtocolError, TimedOut
from nearcast.mqtt.stream import V5, PacketReader

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_CHUNK: Final = 65_536
_FAREWELL: Final = 1.0
"""Seconds for the other side to agree that a connection is closed."""

HIGH_WATER: Final = 256 * 1024
"""Bytes that wait to be sent, beyond which publishers wait too."""

CERTIFICATE: Final = (
    "its certificate is not one that this machine trusts; give `tls` the file of the authority that signed it"
)


class Channel(ABC):
    """Bytes, in both directions."""

    @abstractmethod
    async def read(self) -> bytes:
        """The next bytes; none at the end."""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Hand over bytes; waits while the network takes none."""

    @abstractmethod
    async def close(self) -> None:
        """Close it; does not wait long for the other side."""


class StreamChannel(Channel):
    """TCP, perhaps with TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader: Final = reader
        self._writer: Final = writer
        writer.transport.set_write_buffer_limits(high=HIGH_WATER)

    async def read(self) -> bytes:
        return await self._reader.read(_CHUNK)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        try:
            # TLS says goodbye; whoever does not answer is not waited for.
            async with asyncio.timeout(_FAREWELL):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


class WebSocketChannel(Channel):
    """MQTT in binary frames (MQTT 5, 6)."""

    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket: Final = websocket

    async def read(self) -> bytes:
        from websockets.exceptions import ConnectionClosed

        try:
            data = await self._websocket.recv(decode=False)
        except ConnectionClosed:
            return b""
        return data if isinstance(data, bytes) else data.encode()

    async def send(self, data: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._websocket.send(data)
        except ConnectionClosed as error:
            raise ConnectionFailed(f"the WebSocket was closed: {error}") from None

    async def close(self) -> None:
        await self._websocket.close()


async def open_channel(address: Address, tls: ssl.SSLContext | None, largest: int) -> Channel:
    """Reach the broker, or ``ConnectionFailed``."""
    try:
        if address.is_websocket:
            return await _open_websocket(address, tls, largest)
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=tls, limit=_CHUNK)
    except ssl.SSLCertVerificationError as error:
        raise ConnectionFailed(f"{address} is not trusted: {CERTIFICATE} ({error.verify_message})") from None
    except ssl.SSLError as error:
        raise ConnectionFailed(f"{address} does not speak TLS as expected: {error.reason or error}") from None
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ConnectionFailed(
            f"{address} cannot be reached: {reason}; is the broker running (nearcast serve), and is the port right?"
        ) from None
    return StreamChannel(reader, writer)


async def _open_websocket(address: Address, tls: ssl.SSLContext | None, largest: int) -> Channel:
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException
    from websockets.typing import Subprotocol

    try:
        websocket = await connect(
            str(address),
            ssl=tls,
            subprotocols=[Subprotocol("mqtt")],
            compression=None,
            max_size=largest,
            open_timeout=None,
            ping_interval=None,  # MQTT has its own
            close_timeout=_FAREWELL,
            proxy=None,
        )
    except WebSocketException as error:
        raise ConnectionFailed(f"{address} does not take a WebSocket: {error}; is the path right?") from None
    return WebSocketChannel(websocket)


class Connection:
    """A channel on which the broker has accepted this client."""

    def __init__(
        self, channel: Channel, protocol: ClientProtocol, keep_alive: float, acknowledgement: mqtt5.ConnAckPacket
    ) -> None:
        self.acknowledgement: Final = acknowledgement
        self.keep_alive: Final = keep_alive
        self.heard = 0.0
        """When the broker was heard last, by the clock of the loop."""

        self._channel: Final = channel
        self._protocol: Final = protocol
        self._output: Final = asyncio.Event()
        self._drained: Final = asyncio.Event()
        self._drained.set()
        self._sending = 0
        self._backlog: list[mqtt5.Packet] = []
        self._reader: PacketReader

    @classmethod
    async def open(
        cls,
        address: Address,
        tls: ssl.SSLContext | None,
        packet: mqtt5.ConnectPacket,
        protocol: ClientProtocol,
        timeout: float,  # noqa: ASYNC109 - it covers several steps, and is named in the message
    ) -> Connection:
        """Connect and wait for the broker's consent."""
        largest = packet.max_packet_size or _CHUNK
        channel: Channel | None = None
        try:
            async with asyncio.timeout(timeout):
                channel = await open_channel(address, tls, largest)
                await channel.send(packet.write())
                reader = PacketReader(largest, V5)
                first, backlog = await _first_packet(channel, reader, address)
            if not isinstance(first, mqtt5.ConnAckPacket):
                raise ConnectionFailed(
                    f"{address} answers with a {type(first).__name__} instead of CONNACK; is it an MQTT 5 broker?"
                )
            if int(first.reason_code):
                raise connection_refused(str(address), int(first.reason_code), first.reason_str, packet.username)
        except TimeoutError:
            await _close(channel)
            raise TimedOut(
                f"{address} did not answer within {timeout:g} s; is it a broker, and is the network up?"
            ) from None
        except ProtocolError as error:
            await _close(channel)
            raise ConnectionFailed(f"{address} does not speak MQTT 5: {error}") from None
        except OSError as error:
            await _close(channel)
            if isinstance(error, NearcastError):
                raise
            raise ConnectionFailed(f"{address} broke the connection off: {error}") from None
        except BaseException:
            await _close(channel)
            raise
        keep_alive = packet.keep_alive if first.server_keep_alive is None else first.server_keep_alive
        connection = cls(channel, protocol, float(keep_alive), first)
        connection._reader, connection._backlog = reader, backlog
        return connection

    # Sending

    def flush(self) -> None:
        """There may be something to send."""
        if self._protocol.output_size:
            self._output.set()
            if self._protocol.output_size + self._sending > HIGH_WATER:
                self._drained.clear()

    async def drain(self) -> None:
        """Wait while too much waits to be sent."""
        await self._drained.wait()

    async def write(self) -> None:
        """Send what there is to send, until cancelled."""
        while True:
            await self._output.wait()
            self._output.clear()
            await self.write_now()

    async def write_now(self) -> None:
        data = self._protocol.take_output()
        self._sending = len(data)
        if data:
            await self._channel.send(data)
        self._sending = 0
        if self._protocol.output_size <= HIGH_WATER:
            self._drained.set()

    # Receiving

    async def packets(self, now: Callable[[], float]) -> AsyncIterator[mqtt5.Packet]:
        """What the broker sends, until it closes the connection."""
        for packet in self._backlog:
            yield packet
        self._backlog = []
        while True:
            data = await self._channel.read()
            if not data:
                return
            self.heard = now()
            for packet in self._reader.packets(data):
                yield packet

    async def close(self) -> None:
        self._drained.set()
        await _close(self._channel)


async def _first_packet(
    channel: Channel, reader: PacketReader, address: Address
) -> tuple[mqtt5.Packet, list[mqtt5.Packet]]:
    while True:
        data = await channel.read()
        if not data:
            raise ConnectionFailed(f"{address} closed the connection without a word; is it an MQTT 5 broker?")
        packets = list(reader.packets(data))
        if packets:
            return packets[0], packets[1:]


async def _close(channel: Channel | None) -> None:
    if channel is not None:
        with suppress(OSError):
            await channel.close()
