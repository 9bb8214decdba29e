"""The WebSocket of one viewer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec
from litestar import WebSocket, websocket
from litestar.di import NamedDependency
from litestar.exceptions import WebSocketDisconnect

from nearcast.broker.http.browsers import check_origin
from nearcast.dashboard.contract import LONGEST_NAME, ViewerWish
from nearcast.dashboard.doors import Doors
from nearcast.dashboard.feed import Feed, Seat
from nearcast.errors import NotAuthenticated, QuotaExceeded

AGAIN: Final = 5.0
"""Seconds after which it is looked again whether the viewer may still see."""

LOGGED_OUT: Final = 4401
NOT_UNDERSTOOD: Final = 4400
TOO_MANY: Final = 4429
LONGEST_REASON: Final = 120
"""Bytes, of which a close frame holds 123."""

_WISH: Final = msgspec.json.Decoder(ViewerWish)


@websocket("/live")
async def live(socket: WebSocket[Any, Any, Any], doors: NamedDependency[Doors], feed: NamedDependency[Feed]) -> None:
    check_origin(socket)
    await doors.check(socket)
    await socket.accept()
    try:
        seat = feed.join()
    except QuotaExceeded as error:
        # Said on the line itself: of a WebSocket that was never opened, a page is told nothing, and would try again for ever.
        await socket.close(TOO_MANY, str(error)[:LONGEST_REASON])
        return
    try:
        async with asyncio.TaskGroup() as tasks:
            both = [tasks.create_task(each) for each in (_send(socket, seat, doors), _receive(socket, seat))]
            for task in both:
                # As soon as one of the two has ended, the other has nobody to talk to.
                task.add_done_callback(_ending(both))
    finally:
        feed.leave(seat)


def _ending(tasks: list[asyncio.Task[None]]) -> Callable[[asyncio.Task[None]], None]:
    def end(_done: asyncio.Task[None]) -> None:
        for task in tasks:
            task.cancel()

    return end


async def _send(socket: WebSocket[Any, Any, Any], seat: Seat, doors: Doors) -> None:
    loop = asyncio.get_running_loop()
    checked = loop.time()
    # A viewer that vanishes in the middle of a message is one that has left.
    with contextlib.suppress(WebSocketDisconnect, OSError):
        while True:
            try:
                parcels = await asyncio.wait_for(seat.parcels(), AGAIN)
            except TimeoutError:
                parcels = []
            if loop.time() - checked >= AGAIN:
                checked = loop.time()
                if not await _may_still(socket, doors):
                    await socket.close(LOGGED_OUT, "log in again")
                    return
            for parcel in parcels:
                if isinstance(parcel, str):
                    await socket.send_text(parcel)
                else:
                    await socket.send_bytes(parcel)


async def _may_still(socket: WebSocket[Any, Any, Any], doors: Doors) -> bool:
    try:
        return (await doors.viewer(socket)).may
    except NotAuthenticated:  # a password that it sends with everything, and that has changed
        return False
    except QuotaExceeded:
        return True  # others of its address have tried wrong ones; it is looked at again soon


async def _receive(socket: WebSocket[Any, Any, Any], seat: Seat) -> None:
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            text = await socket.receive_text()
            try:
                wish = _WISH.decode(text)
            except msgspec.DecodeError:
                await socket.close(NOT_UNDERSTOOD, "not understood")
                return
            if wish.pause is not msgspec.UNSET:
                seat.pause(bool(wish.pause))
            if wish.watch is not msgspec.UNSET:
                seat.watched = None if wish.watch is None else str(wish.watch)[:LONGEST_NAME]
