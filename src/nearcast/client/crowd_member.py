"""A member of a crowd, live: THYME's five operations for programs with an event loop.

::

    async with in_crowd("ada", place=Point(38.7527, -9.1848)) as ada:
        photo = await ada.publish("first", pixels, ["goal", "portugal"])
        async for metadata in ada.subscribe("goal & !replay"):
            pixels = await ada.download(metadata)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from nearcast.crowdstore.access import Identity, ReadingKey, Unreadable
from nearcast.crowdstore.choosing import Choosing, Rule
from nearcast.crowdstore.formula import Formula
from nearcast.crowdstore.nucleus import Memory
from nearcast.crowdstore.objects import Metadata, SubscriptionKey
from nearcast.crowdstore.service import CrowdStatistics, CrowdStore
from nearcast.crowdstore.storage import Done, Failure, Outcome
from nearcast.errors import ConnectionFailed, Denied, NearcastError, TimedOut, UnknownName
from nearcast.model.geometry import Point
from nearcast.model.time import EVER, Instant, TimeFrame
from nearcast.runtime.host import Component, Host
from nearcast.runtime.live import LiveRuntime, UdpNetwork
from nearcast.runtime.live.sensor import NewestFix
from nearcast.runtime.ports import Fix
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

_ERRORS: Final[dict[Failure, type[NearcastError]]] = {
    Failure.TIMED_OUT: TimedOut,
    Failure.NOT_FOUND: UnknownName,
    Failure.STOPPED: ConnectionFailed,
    Failure.REFUSED: Denied,
    Failure.UNREADABLE: Unreadable,
}
_NOBODY: Final = UdpNetwork()


class Notifications:
    """What a subscription is told, as it comes; ``async for metadata in notifications``."""

    def __init__(self, member: CrowdMember) -> None:
        self.key: SubscriptionKey
        self._member: Final = member
        self._told: Final[asyncio.Queue[Metadata | NearcastError | None]] = asyncio.Queue()
        """In the end why it has ended; none: because it was to."""

    def __aiter__(self) -> AsyncIterator[Metadata]:
        return self

    async def __anext__(self) -> Metadata:
        told = await self._told.get()
        if isinstance(told, Metadata):
            return told
        self._told.put_nowait(told)
        raise told or StopAsyncIteration

    def more(self) -> None:
        """Ask for a further batch of what it found in the past."""
        self._member.store.more(self.key)

    async def end(self) -> None:
        """Unsubscribe; the iteration ends."""
        self.close()
        self._member.ended(self)
        await self._member.asked(lambda done: self._member.store.unsubscribe(self.key, done), f"end {self.key}")

    def close(self, why: NearcastError | None = None) -> None:
        self._told.put_nowait(why)

    def tell(self, metadata: Metadata) -> None:
        self._told.put_nowait(metadata)


class CrowdMember:
    """One host; made by ``in_crowd``.  What fails raises an error that says why."""

    def __init__(self, store: CrowdStore, choosing: Choosing, now: Callable[[], Instant]) -> None:
        self.store: Final = store
        self.choosing: Final = choosing
        self.now: Final = now
        """The time in microseconds since 1970, of which frames are made: ``TimeFrame(member.now(), None)``."""

        self._open: Final[dict[Notifications, None]] = {}
        self._asked: Final[set[asyncio.Future[Outcome]]] = set()
        self._over: str | None = None
        """Why the host is no more."""

    async def publish(
        self,
        name: str,
        content: bytes,
        tags: Iterable[str],
        *,
        summary: bytes = b"",
        readers: Collection[bytes] | None = None,
        seal_summary: bool = False,
    ) -> Metadata:
        """Publish an object under a name of one's own; done when it can be found."""
        found: list[Metadata] = []

        def begin(done: Done) -> None:
            found.append(
                self.store.publish(
                    name, content, tags, summary=summary, readers=readers, seal_summary=seal_summary, done=done
                )
            )

        await self.asked(begin, f"publish {name!r}")
        return found[0]

    async def unpublish(self, name: str) -> None:
        """Nobody who subscribes from now on hears of it."""
        await self.asked(lambda done: self.store.unpublish(name, done), f"unpublish {name!r}")

    def subscribe(self, formula: Formula | str, frame: TimeFrame = EVER) -> Notifications:
        """Hear of each object once whose tags satisfy the formula and that was, or will be, published within the frame."""
        self._must_run("subscribe")
        told = Notifications(self)
        told.key = self.store.subscribe(formula, told.tell, frame)
        self._open[told] = None
        return told

    def ended(self, told: Notifications) -> None:
        """Its application wants no more of it."""
        self._open.pop(told, None)

    async def download(self, metadata: Metadata, *, opened: bool = True) -> bytes:
        """The object, from whoever has it; not ``opened``: as it is, if it is sealed."""
        outcome = await self.asked(
            lambda done: self.store.download(metadata, done, opened=opened), f"download {metadata.key}"
        )
        assert outcome.content is not None
        return outcome.content

    def initiate(self, mechanism: MechanismSpec) -> None:
        """Have the whole crowd change to that mechanism, beginning here."""
        self.choosing.initiate(mechanism)

    def statistics(self) -> CrowdStatistics:
        return self.store.statistics()

    async def asked(self, begin: Callable[[Done], None], what: str) -> Outcome:
        """Wait for an operation of the store; raises why it failed."""
        self._must_run(what)
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome) -> None:
            if not ended.done():  # nobody waits any more
                ended.set_result(outcome)

        begin(done)
        self._asked.add(ended)
        try:
            outcome = await ended
        except ConnectionFailed as error:
            raise ConnectionFailed(f"could not {what}: {error}") from None
        finally:
            self._asked.discard(ended)
        if outcome.failure is not None:
            raise _ERRORS[outcome.failure](f"could not {what}: {outcome.failure}")
        return outcome

    def _must_run(self, what: str) -> None:
        if self._over is not None:
            raise ConnectionFailed(f"could not {what}: {self._over}")

    def over(self, cause: BaseException | None) -> None:
        """The host is no more, and so nobody answers: because it has left, or because of that."""
        why = self._over = "this member has left the crowd" if cause is None else f"this member has failed: {cause!r}"
        for ended in self._asked:
            if not ended.done():
                ended.set_exception(ConnectionFailed(why))
        for told in self._open:
            told.close(None if cause is None else ConnectionFailed(why))

    def close(self) -> None:
        for told in self._open:
            told.close()


@asynccontextmanager
async def in_crowd(
    name: str,
    mechanism: MechanismSpec = MechanismSpec("PL/SG"),  # noqa: B008 - frozen
    *,
    network: UdpNetwork = _NOBODY,
    place: Point | NewestFix | None = None,
    rule: Rule | None = None,
    decides: bool = True,
    memory: Memory | None = None,
    identity: Identity | None = None,
    groups: Iterable[ReadingKey] = (),
    notices: bool = False,
    further: Sequence[Component] = (),
    runtime: LiveRuntime | None = None,
) -> AsyncIterator[CrowdMember]:
    """Join the crowd on that network, and leave it in good order.

    ``name`` is unlike all others'; with an identity it is ``identity.name``.  A host of DCS needs a ``place``, where it stands or a
    function that tells where it is.  With a ``rule`` it decides with others when the crowd changes its mechanism; without one, or if it does not ``decide``, it follows.
    ``further`` are components of the host after the store, such as a ``Bridge``.  If one of its components raises, the host fails: whatever was asked of
    the member ends with ``ConnectionFailed``, and leaving it raises what was raised.
    """
    runtime = runtime or LiveRuntime()
    store = CrowdStore(mechanism, network.interface, memory=memory, identity=identity, groups=groups, notices=notices)
    choosing = Choosing(rule, network.interface, decides=decides)
    there = _There()
    components = [HostEngine(), store, choosing, *further, there]
    position = _standing(place, runtime) if isinstance(place, Point) else place
    runtime.add(name, lambda: components, [network], position=position)
    running = asyncio.create_task(runtime.run())
    joined = asyncio.create_task(there.started.wait())
    await asyncio.wait([running, joined], return_when=asyncio.FIRST_COMPLETED)
    joined.cancel()
    if running.done():
        running.result()  # raises why it could not join
    member = CrowdMember(store, choosing, runtime.clock.now)
    running.add_done_callback(lambda task: member.over(None if task.cancelled() else task.exception()))
    try:
        yield member
    finally:
        member.close()
        runtime.stop()
        await running


class _There(Component):
    """The last of a host's components: when it is started, all are."""

    def __init__(self) -> None:
        self.started: Final = asyncio.Event()

    def start(self, host: Host) -> None:
        del host
        self.started.set()


def _standing(place: Point, runtime: LiveRuntime) -> NewestFix:
    return lambda: Fix(runtime.clock.now(), place, 0.0, 0.0, None)
