"""Hosts on the radio: the engine's frames are their messages."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

from nearcast.errors import InvalidInput
from nearcast.model.time import Instant
from nearcast.runtime.links import QUEUE_FULL, SENT, OpenPort, Traffic
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, ReceiveTogether, Repeated, Sending
from nearcast.runtime.simulation.kernel import NEVER, Engine, Simulation
from nearcast.runtime.simulation.motion import Motion
from nearcast.runtime.simulation.network import (
    RECEIVED,
    UNKNOWN_RECEIVER,
    Network,
    Parcel,
    SimulatedLink,
    why_unheard,
)
from nearcast.runtime.simulation.radio.engine import BROADCAST, RadioEngine
from nearcast.runtime.simulation.radio.layout import DOORS, KNOWN, UNREAD, Int32s
from nearcast.runtime.simulation.radio.profile import RadioProfile
from nearcast.runtime.simulation.radio.reports import Acceptance, Outcome
from nearcast.runtime.simulation.radio.statistics import RadioStatistics

TOO_LARGE: Final = "too large"

_REASONS: Final = {
    Outcome.RETRIES_EXHAUSTED: "retries exhausted",
    Outcome.EXPIRED: "waited too long",
    Outcome.SWITCHED_OFF: "switched off",
}
_OUTCOMES: Final = tuple(Outcome)
_OUTCOME: Final = (1 << UNREAD) - 1
# What is asked for with every frame; to look at a member of an enumeration costs as much as a call.
_SENT: Final = int(Outcome.SENT)
_DROPPED: Final = Acceptance.DROPPED
_SENDING: Final = (Sending.ACCEPTED, Sending.QUEUED)
_NO_COPY: Final = (0, 0, 0)


class RadioNetwork(Network, Engine):
    """A local network: addressed messages and broadcasts to whoever is near enough.

    The engine counts nanoseconds from the start of the run; what it reports, hosts hear at the next whole microsecond.
    """

    def __init__(
        self,
        simulation: Simulation,
        profile: RadioProfile,
        motion: Motion,
        *,
        interface: str = "wifi",
        check_wire: bool = False,
    ) -> None:
        super().__init__(simulation, interface, local=True, overhead=profile.frame_bytes(0), check_wire=check_wire)
        self._start: Final = simulation.start
        self.profile: Final = profile
        self.energy = profile.energy
        self.engine: Final = RadioEngine(
            profile, motion.table, simulation.random.number(interface) % 2**63, start_us=simulation.start
        )
        # Not every host has this radio, and those that have it are not up yet.
        for node in range(len(motion.table)):
            self.engine.power(node, on=False, at_ns=0)
        self._by_node: Final[dict[int, SimulatedLink]] = {}
        self._on_air: Final[dict[int, Parcel]] = {}
        self._heard: Final[dict[int, int]] = {}
        self._unheard: Final[dict[int, str]] = {}
        """Why what came to the one it was for was of no use there; what was acknowledged may be among it."""

        self._headers: Final = profile.frame_bytes(0)
        self._longest: Final = profile.longest_payload
        self._keys = 0
        self._copies: Final[dict[tuple[int, Hashable], tuple[int, int, int]]] = {}
        """Messages that go from host to host, by port and what they say of themselves: their numbers, groups and doors; the newest."""

        self._groups: Final[dict[tuple[int, Hashable], int]] = {}
        """The numbers of the groups that were named last: every plan makes a new one, and a long run has very many."""

        self._numbers = self._group_numbers = 0
        self._doors: Final[dict[tuple[int, str], int]] = {}
        """Ports and kinds of messages of which copies are only counted, with their places in the engine's books."""

        self._knowing: Final[dict[int, Int32s]] = {}
        self._booked: Final = self.engine.unread.copy()
        simulation.add_engine(self)

    def attach(self, host: str, node: int) -> SimulatedLink:
        link = super().attach(host, node)
        self._by_node[node] = link
        return link

    def transmit(self, parcel: Parcel) -> Sending:
        to = BROADCAST
        if parcel.receiver is not None:
            if parcel.receiver not in self.links:
                return self._refuse(parcel, UNKNOWN_RECEIVER)
            to = self.links[parcel.receiver].node
            if to == parcel.sender.node:
                raise InvalidInput(f"host {parcel.receiver!r} sent a message over {self.interface} to itself")
        payload = parcel.size - self._headers
        if payload > self._longest:
            return self._refuse(parcel, TOO_LARGE)
        self._keys += 1
        key, engine = self._keys, self.engine
        copy, group, door = self._copy(parcel)
        now = (parcel.sent - self._start) * 1_000
        acceptance = engine.send(parcel.sender.node, to, payload, key, now, copy=copy, group=group, door=door)
        if acceptance is not _DROPPED:
            self._on_air[key] = parcel
        if engine.reporting:
            self._tell()
        else:
            self._update()
        return self._refuse(parcel, QUEUE_FULL) if acceptance is _DROPPED else _SENDING[acceptance]

    def switched(self, link: SimulatedLink, on: bool) -> None:
        self.engine.power(link.node, on, self._nanoseconds(self.simulation.time))
        self._tell()

    def step(self, limit: Instant) -> None:
        """Everything strictly before ``limit``, up to the first instant at which somebody is to be told."""
        engine = self.engine
        reached = engine.advance((limit - self._start) * 1_000 - 1)
        if engine.reporting:
            self.simulation.jump(self._start + -(-reached // 1_000))
            self._tell()
        else:
            self._update()

    def _tell(self) -> None:
        """Hand over what arrived, and write down what became of frames (also of those that waited when a station went off)."""
        delivered, receivers, completed = self.engine.news()
        self._update()
        if receivers:
            self._deliver(delivered, receivers)
        on_air, heard = self._on_air, self._heard
        for key, _, outcome in completed:
            parcel, count = on_air.pop(key), heard.pop(key, 0) + (outcome >> UNREAD)
            if outcome & _OUTCOME == _SENT and parcel.receiver is None:
                # Most frames end like this: ``_complete``, without the calls.
                sender, kind, size = parcel.sender, parcel.kind, parcel.size
                entry = sender.entry(SENT, kind)
                entry[0] += 1
                entry[1] += size
                self.messages(
                    parcel.sent, self.simulation.time, self.interface, kind, sender.address, None, size, SENT, count
                )
            else:
                self._complete(parcel, _OUTCOMES[outcome & _OUTCOME], count, self._unheard.pop(key, None))

    def _deliver(self, key: int, receivers: list[int]) -> None:
        """One frame has arrived at these stations."""
        parcel, link = self._on_air[key], self._by_node[receivers[0]]
        listener = link.listeners.get(parcel.door) or link.listener(parcel.door, parcel.kind)
        self._heard[key] = 0
        if listener is None or listener[3] is None or self.check_wire:
            for node in receivers:
                self._tell_alone(key, parcel, self._by_node[node])
            return
        _, receive_together = listener[3]
        nodes, others = iter(receivers), list[SimulatedLink]()
        while True:
            receive_together(
                self._hearers(key, parcel, nodes, receive_together, others), parcel.sender.address, parcel.message
            )
            if not others:
                return
            self._tell_alone(key, parcel, others.pop())

    def _tell_alone(self, key: int, parcel: Parcel, link: SimulatedLink) -> None:
        if self.hand_over(parcel, link):
            self._heard[key] += 1
        elif parcel.receiver is not None:
            self._unheard[key] = why_unheard(link)

    def _hearers(
        self,
        key: int,
        parcel: Parcel,
        nodes: Iterator[int],
        receive_together: ReceiveTogether[Any],
        others: list[SimulatedLink],
    ) -> Iterator[Any]:
        """Those who may be told by that function, up to the first of the others.

        That one is told alone, when the function has done all that it had to do for those before: whoever watches sees everything in the
        order in which stations hear it.
        """
        by_node, door, size, count = self._by_node, parcel.door, parcel.size, 0
        for node in nodes:
            link = by_node[node]
            listener = link.listeners.get(door) or link.listener(door, parcel.kind)
            if listener is not None and listener[3] is not None and listener[3][1] is receive_together:
                entry = listener[1]
                entry[0] += 1
                entry[1] += size
                count += 1
                yield listener[3][0]
            else:
                others.append(link)
                break
        self._heard[key] += count

    # Copies that need not be read

    def repeater(self, link: SimulatedLink, port: int) -> Repeated | None:
        number_of, known = self._copies.get, self.engine.known(link.node)
        self._knowing[link.node] = known

        def repeated(name: Hashable) -> None:
            found = number_of((port, name))
            if found is not None:
                known[found[0] % KNOWN] = found[0]

        return repeated

    def once(self, link: SimulatedLink, port: int, group: Hashable | None) -> None:
        number = 0 if group is None else self._group(port, group)
        for (known, _), door in self._doors.items():
            if known == port:
                self.engine.once(link.node, door, number)

    def attend(self, link: SimulatedLink) -> None:
        if link.node in self._knowing:
            self._knowing[link.node][:] = 0

    def doors_changed(self, link: SimulatedLink) -> None:
        super().doors_changed(link)
        for port in {port for port, _ in self._doors}:
            endpoint = link.open_ports.get(port)
            self.once(link, port, None if endpoint is None else endpoint.group)

    def unread(self, link: SimulatedLink, port: int) -> int:
        doors = [place for (known, _), place in self._doors.items() if known == port]
        return int(self.engine.unread[link.node, doors, 0].sum())

    def traffic(self) -> Iterator[Traffic]:
        fresh = self.engine.unread - self._booked
        self._booked[:] = self.engine.unread
        for (_, kind), place in self._doors.items():
            for node, link in self._by_node.items():
                if fresh[node, place, 0]:
                    entry = link.entry(RECEIVED, kind)
                    entry[0] += int(fresh[node, place, 0])
                    entry[1] += int(fresh[node, place, 1])
        return super().traffic()

    def _copy(self, parcel: Parcel) -> tuple[int, int, int]:
        """The number of the message of which a parcel is a copy, that of its group, and its place in the books; 0 if it has no copies."""
        name = getattr(parcel.message, "repetition", None)
        if name is None:
            return _NO_COPY
        port, _ = parcel.door
        found = self._copies.get((port, name))
        if found is None:
            door = self._door(port, parcel.kind)
            if door is None:
                return _NO_COPY
            self._numbers += 1
            group = self._group(port, name[0]) if isinstance(name, tuple) else 0
            found = self._copies[port, name] = self._numbers, group, door
            if len(self._copies) > KNOWN:
                del self._copies[next(iter(self._copies))]
        return found

    def _door(self, port: int, kind: str) -> int | None:
        """The place of such messages in the books; none if there is no room."""
        door = self._doors.get((port, kind))
        if door is None and len(self._doors) < DOORS:
            door = self._doors[port, kind] = len(self._doors)
            for link in self.links.values():
                endpoint = link.open_ports.get(port)
                if endpoint is not None:
                    self.once(link, port, endpoint.group)
        return door

    def _group(self, port: int, group: Hashable) -> int:
        number = self._groups.pop((port, group), None)
        if number is None:
            # Never one that another group had: stations may still go by it.
            number = self._group_numbers = self._group_numbers + 1
        self._groups[port, group] = number
        if len(self._groups) > KNOWN:
            del self._groups[next(iter(self._groups))]
        return number

    @property
    def in_flight(self) -> int:
        return len(self._on_air)

    def statistics(self) -> RadioStatistics:
        return self.engine.statistics()

    def _complete(self, parcel: Parcel, outcome: Outcome, heard: int, unheard: str | None) -> None:
        if outcome is Outcome.RETRIES_EXHAUSTED and parcel.receiver is not None:
            endpoint = parcel.sender.open_ports.get(parcel.door[0])
            if endpoint is not None and endpoint.in_vain is not None:
                # Whether it was heard all the same, the sender does not know.
                told = endpoint, parcel.receiver, parcel.message
                self.simulation.at(self.simulation.time, self._tell_sender, told)
        lost = outcome in _REASONS and not heard and unheard is None
        # Booked once if it has been on air, however often it was tried: the engine counts attempts.
        if not lost or outcome is Outcome.RETRIES_EXHAUSTED:
            parcel.sender.count(SENT, parcel.kind, parcel.size)
        if lost:
            self.lose(parcel, _REASONS[outcome])
            return
        self.note(parcel, unheard or (SENT if parcel.receiver is None else RECEIVED), heard)

    def _tell_sender(self, told: tuple[OpenPort, Address, Message]) -> None:
        endpoint, receiver, message = told
        # Unless its host has failed, or closed the port, meanwhile.
        if endpoint.in_vain is not None and endpoint.link.open_ports.get(endpoint.port) is endpoint:
            endpoint.in_vain(receiver, message)

    def _refuse(self, parcel: Parcel, reason: str) -> Sending:
        self.lose(parcel, reason)
        return Sending.DROPPED

    def _update(self) -> None:
        due = self.engine.next_ns
        self.next = NEVER if due >= NEVER else self._start + due // 1_000

    def _nanoseconds(self, time: Instant) -> int:
        return (time - self._start) * 1_000
