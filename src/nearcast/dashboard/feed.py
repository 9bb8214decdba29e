"""The live feed: in every period one picture for all viewers, encoded once.

Nothing happens here while nobody looks.  A viewer that does not take what is offered misses pictures, and gets the newest one when it is ready:
nothing piles up.  However much there is to show, the loop belongs to the broker: after a picture that took long, the next one waits longer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Protocol

import msgspec

from nearcast.broker.core import Broker
from nearcast.broker.settings import DashboardSettings
from nearcast.dashboard.contract import ClientGone, Hello, Load, Origin, RecentTick, ShownTransition, Tick
from nearcast.dashboard.crowd import Crowd
from nearcast.dashboard.load import LoadMeter
from nearcast.dashboard.positions import MOST, Positions
from nearcast.dashboard.spectator import A_SECOND, Sample
from nearcast.dissemination.handed_broker import TransitionDone
from nearcast.errors import NearcastError, QuotaExceeded
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS

log: Final = logging.getLogger(__name__)
SHARE: Final = 0.04
"""Of the loop's time, at most, goes into pictures."""

MOST_TEXTS: Final = 8
"""Periods whose messages may wait for one viewer; then it begins anew."""

RECENT: Final = 300
"""Ticks that are remembered for who begins to look."""

RECENT_TRANSITIONS: Final = 50

Parcel = str | bytes
"""A text message or a binary one."""


@dataclass(frozen=True, slots=True)
class FeedStatistics:
    viewers: int
    looks: int
    """Pictures made."""

    seconds: float
    """That they took."""

    skipped: int
    """Pictures that a viewer did not get, because it had not taken the one before."""

    anew: int
    """Times that a viewer had to begin anew."""


class Layer(Protocol):
    """Something more that is shown on the map."""

    def begin(self) -> None:
        """Somebody looks, and nobody did; nothing has been told."""

    def end(self) -> None:
        """Nobody looks any more."""

    def changed(self) -> Sequence[msgspec.Struct]:
        """Once a second: what everybody is told."""

    def standing(self) -> Sequence[msgspec.Struct]:
        """What holds after all that was told, for whoever knows nothing."""


class Seat:
    """One viewer's place: what waits for it."""

    def __init__(self, feed: Feed) -> None:
        self._feed: Final = feed
        self._ready: Final = asyncio.Event()
        self._texts: Final[deque[str]] = deque()
        self._picture: bytes | None = None
        self._whole = False
        self._anew = True
        self._paused = False
        self.watched: str | None = None

    @property
    def paused(self) -> bool:
        return self._paused

    def offer(self, text: str | None, picture: bytes | None) -> None:
        if self._paused:
            return
        if text is not None:
            self._texts.append(text)
            if len(self._texts) > MOST_TEXTS:
                self._begin_anew()
        if picture is not None:
            if self._picture is not None:
                self._whole = True
                self._feed.skipped += 1
            self._picture = picture
        if self._texts or self._picture is not None or self._anew:
            self._ready.set()

    def tell(self, message: msgspec.Struct) -> None:
        """Something for this viewer alone; dropped if it is behind."""
        if not self._paused and len(self._texts) < MOST_TEXTS:
            self._texts.append(encoded(message))
            self._ready.set()

    def pause(self, paused: bool) -> None:
        if self._paused and not paused:
            self._begin_anew()
            self._ready.set()
        self._paused = paused
        self._feed.wake()

    async def parcels(self) -> list[Parcel]:
        """What is to be sent next; waits until there is something."""
        await self._ready.wait()
        self._ready.clear()
        if self._anew:
            self._anew = self._whole = False
            self._texts.clear()
            self._picture = None
            return self._feed.beginning()
        parcels: list[Parcel] = [*self._texts]
        self._texts.clear()
        if self._picture is not None:
            parcels.append(self._feed.positions.full() if self._whole else self._picture)
            self._picture, self._whole = None, False
        return parcels

    def restart(self) -> None:
        """What it was told does not hold any more."""
        self._texts.clear()
        self._picture = None
        self._anew = True

    def _begin_anew(self) -> None:
        self.restart()
        self._feed.anew += 1


class Feed:
    """One for each broker."""

    def __init__(self, broker: Broker, settings: DashboardSettings, origin: Callable[[], Point]) -> None:
        self._broker: Final = broker
        self._period: Final = settings.period / MICROSECONDS
        self._most: Final = settings.viewers
        self._origin: Final = origin
        self._seats: Final[dict[Seat, None]] = {}
        self._timer: asyncio.Handle | None = None
        self._due = 0.0
        self._lag = 0.0
        self._meter: Final = LoadMeter(broker)
        self._sample: Final = Sample(broker.publishing, broker.clock.now, max(1, int(A_SECOND * self._period)))
        self._shown = 0
        self._next_tick = 0.0
        self._transitions = 0
        self._life: Final = secrets.token_hex(4)
        self._ticks: Final[deque[msgspec.Raw]] = deque(maxlen=RECENT)
        self._delays: list[int] = []
        self.positions: Positions
        self._crowd: Crowd
        self.by: Callable[[TransitionDone], str | None] = lambda _done: None
        """Who had it carried out, or what."""

        self.layers: list[Layer] = []
        self.watching: Callable[[str], Awaitable[msgspec.Struct]] | None = None
        """What is told of a client to whom a viewer looks closely."""

        self._watching: asyncio.Task[None] | None = None
        self._looks = 0
        self._seconds = 0.0
        self._beginning: list[Parcel] | None = None
        """For all who begin before the next picture."""

        self._spent = 0.0
        """Seconds beside the picture, since the last one."""

        self._rest_until = 0.0
        """Before, the share of the loop's time is used up."""

        self.skipped = self.anew = 0

    def statistics(self) -> FeedStatistics:
        return FeedStatistics(len(self._seats), self._looks, self._seconds, self.skipped, self.anew)

    # Viewers

    @property
    def seats(self) -> Sequence[Seat]:
        return tuple(self._seats)

    def join(self) -> Seat:
        """``QuotaExceeded`` if there is no room for one more."""
        if len(self._seats) >= self._most:
            raise QuotaExceeded(f"{self._most} pages are open already; close one, or raise dashboard.viewers")
        seat = Seat(self)
        self._seats[seat] = None
        self.wake()
        return seat

    def leave(self, seat: Seat) -> None:
        self._seats.pop(seat, None)
        if not self._watched:
            self._stop()

    @property
    def _watched(self) -> bool:
        return any(not seat.paused for seat in self._seats)

    def wake(self) -> None:
        """Somebody has come, or does not pause any more; or the other way round."""
        if not self._watched:
            self._stop()
        elif self._timer is None:
            self._begin()

    def _begin(self) -> None:
        self.positions = Positions(self._broker.presence.matcher, self._origin())
        self._crowd = Crowd(self._broker, self.positions)
        self._meter.begin()
        self._sample.taken()
        self._sample.delays()
        self._delays = []
        self._shown, self._lag = 0, 0.0
        self._transitions = self._broker.scheming.live.transitions
        self._next_tick = 0.0
        for layer in self.layers:
            layer.begin()
        for seat in self._seats:  # whoever is there from before was told of another origin
            seat.restart()
        self._beginning = None
        # Whoever pauses and goes on in quick succession gets no more pictures than who just looks.
        self._due = max(self._broker.loop.time(), self._rest_until)
        self._timer = self._broker.loop.call_at(self._due, self._look)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._sample.end()
            for layer in self.layers:
                layer.end()

    # Pictures

    def beginning(self) -> list[Parcel]:
        """All that somebody has to know who has known nothing."""
        if self._beginning is None:
            begun = perf_counter()
            self._beginning = self._made_beginning()
            self._spent += perf_counter() - begun
        return self._beginning

    def _made_beginning(self) -> list[Parcel]:
        crowd = self._crowd
        origin = self.positions.origin
        hello = Hello(
            {str(number): client for number, client in crowd.names.items()},
            round(self._period * 1_000),
            Origin(origin.lat, origin.lon),
            list(crowd.schemes.words),
            list(crowd.roles.words),
            MOST,
            self._life,
            list(self._ticks),
            [self._transition(done) for done in self._broker.scheming.live.latest(RECENT_TRANSITIONS)],
        )
        standing = [message for layer in self.layers for message in layer.standing()]
        parcels: list[Parcel] = [encoded(hello), self.positions.full()]
        return [*parcels, encoded(standing)] if standing else parcels

    def _look(self) -> None:
        loop = self._broker.loop
        now, begun = loop.time(), perf_counter()
        self._lag = max(self._lag, now - self._due)
        try:
            self._show(now)
        except Exception:  # the broker goes on, and so does the next picture
            log.exception("a picture for the dashboard could not be made")
        took = perf_counter() - begun + self._spent
        self._looks += 1
        self._seconds += took
        self._beginning, self._spent = None, 0.0
        self._due = self._rest_until = loop.time() + max(self._period, took / SHARE)
        self._timer = loop.call_at(self._due, self._look)

    def _show(self, now: float) -> None:
        picture = self.positions.look(self._broker.clock.now())
        names = self._crowd.look()
        messages: list[msgspec.Struct] = [] if names is None else [names]
        events = self._sample.taken()
        self._shown += len(events)
        self._delays += self._sample.delays()
        messages += events
        if now >= self._next_tick:
            self._next_tick = now + 1.0 - self._period / 2
            messages += self._every_second()
        self._sample.begin()
        text = encoded(messages) if messages else None
        for seat in self._seats:
            seat.offer(text, picture)

    def _every_second(self) -> list[msgspec.Struct]:
        broker = self._broker
        status = broker.scheming.live.status()
        load = self._meter.read(self._delays, self._lag)
        left_out = max(0, self._meter.published - self._shown)
        self._delays, self._lag, self._shown = [], 0.0, 0
        tick = Tick(
            broker.clock.now(),
            self.positions.located,
            len(broker.sessions.all),
            len(broker.services.open),
            len(self._seats),
            load,
            str(status.scheme),
            {str(spec): count for spec, count in status.groups.items()},
            status.waiting,
            left_out,
            broker.journal.problem or broker.archive.problem,
        )
        self._remember(tick.at_us, load)
        more = [message for layer in self.layers for message in layer.changed()]
        self._look_closely()
        return [*self._new_transitions(), tick, *more]

    def _look_closely(self) -> None:
        """Each client once, for all who look at it; not before the last look has ended."""
        watched = {seat.watched for seat in self._seats if seat.watched is not None and not seat.paused}
        if watched and (self._watching is None or self._watching.done()):
            self._watching = self._broker.loop.create_task(self._tell_of(sorted(watched)))

    async def _tell_of(self, clients: Sequence[str]) -> None:
        assert self.watching is not None
        for client in clients:
            try:
                shown = await self.watching(client)
            except NearcastError as error:
                shown = ClientGone(client, str(error))
            except Exception:
                log.exception("client %r cannot be shown", client)
                continue
            for seat in [seat for seat in self._seats if seat.watched == client]:
                seat.tell(shown)

    def _remember(self, at: int, load: Load) -> None:
        self._ticks.append(msgspec.Raw(msgspec.json.encode(RecentTick(at, load))))

    def _new_transitions(self) -> list[ShownTransition]:
        live = self._broker.scheming.live
        new, self._transitions = live.transitions - self._transitions, live.transitions
        return [self._transition(done) for done in live.latest(new)]

    def _transition(self, done: TransitionDone) -> ShownTransition:
        return ShownTransition(
            done.time,
            "" if done.before is None else str(done.before),
            str(done.scheme),
            done.region,
            self.by(done),
            0 if done.everybody else done.clients,
        )


def encoded(message: Any) -> str:
    return msgspec.json.encode(message).decode()
