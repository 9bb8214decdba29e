"""The transition engine of one host: exchanges mechanisms, whole, in part, or only their parameters (BYPASS.KOM 5.2.2).

An exchange has four steps: make the new mechanism and give it the state of the old; start it; let the proxy point to it; stop
the old.  Up to the third, everybody sees the old mechanism, and a failure leaves it as it was (the documents say nothing of
failures).  All of it is local; only then may the new mechanism talk to others (``bootstrap``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from nearcast.errors import InvalidInput, TransitionFailed, UnknownName
from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host, nowhere
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Clock
from nearcast.transition.custom import Transition
from nearcast.transition.mechanism import Mechanism, Silence
from nearcast.transition.null import Api, null_of
from nearcast.transition.proxy import ParallelProxy, Proxy
from nearcast.transition.slot import Make, Slot
from nearcast.transition.specification import NULL, MechanismSpec, Scalar, check_scalar, shown
from nearcast.transition.state import drop

M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True, slots=True)
class EngineStatistics:
    proxies: int
    exchanges: int
    """Of the whole mechanism of a proxy, its first start included."""

    partial: int
    changes: int
    """Self-transitions that changed something."""

    moved: int
    """Members that partial and total transitions moved from one mechanism to another."""

    failed: int


class TransitionEngine:
    """All proxies of one host."""

    def __init__(
        self, clock: Clock, observers: Observers, host: str, position: Callable[[], Point | None] = nowhere
    ) -> None:
        self.silence: Final = Silence()
        """To guard the ports of mechanisms with: ``silence.guarded(endpoint.send)``."""

        self._clock: Final = clock
        self._observers: Final = observers
        self._emit: Final = observers.emitter("transitions")
        self._host: Final = host
        self._position: Final = position
        self._slots: Final[dict[str, Slot]] = {}
        self._exchanges = self._partial = self._changes = self._moved = self._failed = 0

    @property
    def switching(self) -> bool:
        """Whether a mechanism is being exchanged at this moment."""
        return bool(self.silence)

    def create_proxy(self, name: str, api: Api[M], make: Make[M], default: MechanismSpec = NULL) -> Proxy[M]:
        """A proxy for mechanisms of that API, with the default one started (``NULL``: none)."""
        proxy = Proxy(name, NULL, null_of(api))
        self._add(proxy, api, make, default)
        return proxy

    def create_parallel_proxy(
        self, name: str, api: Api[M], make: Make[M], default: MechanismSpec = NULL
    ) -> ParallelProxy[M]:
        """A proxy for several mechanisms at a time, with the default one started."""
        proxy = ParallelProxy(name, NULL, null_of(api))
        self._add(proxy, api, make, default)
        return proxy

    def proxy(self, name: str) -> Proxy[Any] | ParallelProxy[Any]:
        return self._slot(name).proxy

    def register(self, proxy_name: str, transition: Transition[Any, Any]) -> None:
        """Use this custom transition between mechanisms of that proxy."""
        self._slot(proxy_name).transitions.register(transition)

    def execute(self, proxy_name: str, spec: MechanismSpec, plan: str | None = None) -> bool:
        """Exchange the whole mechanism, for everybody; false if it is this one already.

        Raises ``TransitionFailed``; the old mechanism then goes on.  An error while the old one is stopped, or while the new
        one bootstraps, is no failed transition and is passed on as it is.
        """
        slot = self._slot_to_change(proxy_name)
        if isinstance(slot.proxy, ParallelProxy):
            return self._execute_total(slot, slot.proxy, spec, plan)
        proxy, source, before = slot.proxy, slot.proxy.active, slot.proxy.spec
        if spec == before:
            return False
        with self._alone(slot), self.silence.kept():
            with self._or_as_before(slot, f"from {before} to {spec}"):
                target = slot.started(spec, [(source, None)])
            proxy.active, proxy.spec = target, spec
        self._exchanges += 1
        self._note(slot, before, spec, plan)
        try:
            with self._alone(slot), self.silence.kept():
                source.stop_mechanism()
        finally:
            target.bootstrap()
        return True

    def execute_total(self, proxy_name: str, spec: MechanismSpec, plan: str | None = None) -> bool:
        """Like ``execute``: all members, and the default for newcomers."""
        return self.execute(proxy_name, spec, plan)

    def execute_partial(
        self, proxy_name: str, spec: MechanismSpec, members: Iterable[str], plan: str | None = None
    ) -> int:
        """Move these members to that mechanism, which runs beside the others; answers how many were moved.

        Who is no member yet is moved from the default.
        """
        slot = self._slot_to_change(proxy_name)
        proxy = slot.proxy
        if not isinstance(proxy, ParallelProxy):
            raise InvalidInput(
                f"proxy {proxy_name!r} runs one mechanism at a time; create it with create_parallel_proxy"
            )
        groups = proxy.groups(members)
        groups.pop(spec, None)
        if not groups:
            return 0
        self._move(slot, proxy, spec, groups, plan)
        self._partial += 1
        return sum(map(len, groups.values()))

    def execute_self(self, proxy_name: str, state: str, value: Scalar, plan: str | None = None) -> bool:
        """Set a declared parameter of the running mechanism; false if it has that value already.

        Of several mechanisms in parallel, that of all who declare it.
        """
        check_scalar(value, f"state {state!r} of {proxy_name!r}")
        slot = self._slot_to_change(proxy_name)
        proxy = slot.proxy
        running = dict(proxy.instances) if isinstance(proxy, ParallelProxy) else {proxy.spec: proxy.active}
        with self._alone(slot), self._or_as_before(slot, f"{state} to {value!r}"):
            changed = slot.set_all(running, state, value)
        for before in changed:
            after = before.changed(state, value)
            if isinstance(proxy, ParallelProxy):
                proxy.rename(before, after)
            else:
                proxy.spec = after
            self._changes += 1
            self._note(slot, before, after, plan)
        return bool(changed)

    def statistics(self) -> EngineStatistics:
        return EngineStatistics(
            len(self._slots), self._exchanges, self._partial, self._changes, self._moved, self._failed
        )

    def _execute_total(self, slot: Slot, proxy: ParallelProxy[Any], spec: MechanismSpec, plan: str | None) -> bool:
        # The default comes first: what is shared is taken from it.
        others = sorted((before for before in proxy.instances if before != spec), key=lambda it: it != proxy.default)
        if not others:
            return False
        self._move(slot, proxy, spec, {before: proxy.members_of(before) for before in others}, plan, total=True)
        self._exchanges += 1
        return True

    def _move(
        self,
        slot: Slot,
        proxy: ParallelProxy[Any],
        spec: MechanismSpec,
        groups: dict[MechanismSpec, tuple[str, ...]],
        plan: str | None,
        *,
        total: bool = False,
    ) -> None:
        """Move members, given by the mechanism that they come from."""
        moved = [member for group in groups.values() for member in group]
        sources = [(proxy.instances[before], group) for before, group in groups.items()]
        running = proxy.instances.get(spec)
        with self._alone(slot), self.silence.kept():
            with self._or_as_before(slot, f"{len(moved)} members to {spec}"):
                if running is not None:
                    target = slot.extended(running, sources)
                else:
                    # All that the default holds goes to its successor, also what it knows of strangers.
                    whole = proxy.instances[proxy.default] if total else None
                    target = slot.started(spec, [(it, None if it is whole else group) for it, group in sources])
            proxy.move(moved, spec, target)
            proxy.default = spec if total else proxy.default
            remaining = [(it, group) for it, group in sources if proxy.is_needed(it)]
            for source, group in remaining:
                drop(source, group)
        self._moved += len(moved)
        for before in groups:
            self._note(slot, before, spec, plan)
        try:
            with self._alone(slot), self.silence.kept():
                for source, group in remaining:
                    source.members_left(group)
                proxy.discard_empty()
        finally:
            if running is not None:
                target.members_joined(tuple(moved))
            else:
                target.bootstrap()

    def _add(
        self, proxy: Proxy[Any] | ParallelProxy[Any], api: Api[Any], make: Make[Any], default: MechanismSpec
    ) -> None:
        if proxy.name in self._slots:
            raise InvalidInput(f"host {self._host!r} has a proxy {proxy.name!r} already; give each its own name")
        assert isinstance(api, type)  # null_of() has seen to it
        self._slots[proxy.name] = Slot(proxy, api, make)
        try:
            self.execute(proxy.name, default)
        except TransitionFailed:
            del self._slots[proxy.name]
            raise

    def _slot(self, name: str) -> Slot:
        try:
            return self._slots[name]
        except KeyError:
            has = ", ".join(self._slots) or "none"
            raise UnknownName(f"host {self._host!r} has no proxy {name!r} (it has: {has})") from None

    def _slot_to_change(self, name: str) -> Slot:
        slot = self._slot(name)
        if self._observers.watching:
            self._observers.refuse("exchange a mechanism")
        if slot.busy:
            self._failed += 1
            raise TransitionFailed(
                f"{name!r} on {self._host!r} is being exchanged just now; ask again when that is over"
            )
        return slot

    @contextmanager
    def _alone(self, slot: Slot) -> Iterator[None]:
        slot.busy = True
        try:
            yield
        finally:
            slot.busy = False

    @contextmanager
    def _or_as_before(self, slot: Slot, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._failed += 1
            raise TransitionFailed(
                f"{slot.proxy.name!r} on {self._host!r} goes on as before, {what} failed: {error}"
            ) from error

    def _note(self, slot: Slot, source: MechanismSpec, target: MechanismSpec, plan: str | None) -> None:
        if isinstance(slot.proxy, Proxy):
            slot.proxy.changed()
        place = self._position()
        lat, lon = (place.lat, place.lon) if place else (None, None)
        self._emit(self._clock.now(), self._host, slot.proxy.name, shown(source), shown(target), lat, lon, plan)


class HostEngine(Component):
    """The engine as a component: others of the host find it, as ``host.component(HostEngine).engine``."""

    engine: TransitionEngine

    def start(self, host: Host) -> None:
        self.engine = TransitionEngine(host.clock, host.observers, host.name, host.position)
