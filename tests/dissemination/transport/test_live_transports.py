"""The exchange of transports over UDP: two groups stand for two radios."""

from __future__ import annotations

from tests.dissemination.transport.quarter import WIFI, Listener, of
from tests.runtime.live.virtual import live, neighbourhood, started
from tests.waiting import until

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.transport.local_link import LocalTransport
from nearcast.model.event import Event
from nearcast.runtime.host import Component, Host
from nearcast.runtime.live import LiveRuntime
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

NAMES = ("ada", "bob", "eve")


def build() -> list[Component]:
    adhoc = AdHoc(AdHocSettings(MechanismSpec("FLOODING")))
    return [HostEngine(), LocalTransport(WIFI), CarriedEvents([adhoc]), adhoc, Listener()]


def test_live_hosts_change_and_everybody_gets_every_event_once() -> None:
    async def story() -> None:
        runtime = LiveRuntime(seed=1)
        networks = [neighbourhood("wifi"), neighbourhood("bluetooth")]
        for name in NAMES:
            runtime.add(name, build, networks)
        running = await started(runtime)
        published: list[str] = []

        def host(name: str) -> Host:
            found = runtime.hosts[name].host
            assert found is not None
            return found

        def got(name: str) -> list[str]:
            return host(name).component(Listener).got

        async def talk(times: int) -> None:
            for _ in range(times):
                name = NAMES[len(published) % 3]
                published.append(f"{name}-{len(published)}")
                event = Event(published[-1], "news", host(name).now(), publisher=name)
                host(name).component(CarriedEvents).publish(event)
                newest = published[-1]
                await until(lambda: all(newest in got(other) for other in NAMES if other != name))  # noqa: B023 - at once

        await talk(10)
        # Short, so that a part of what is said comes after it.
        host("ada").component(LocalTransport).initiate(of("BLUETOOTH", grace=0.3))
        await talk(30)
        transports = [host(name).component(LocalTransport) for name in NAMES]
        await until(lambda: all(it.running.name == "BLUETOOTH" for it in transports))
        await until(lambda: not any(it.statistics().overlapping for it in transports))
        before = {(row.host, row.interface): row.messages for row in runtime.traffic() if row.kind == "ad hoc event"}
        await talk(10)
        after = {(row.host, row.interface): row.messages for row in runtime.traffic() if row.kind == "ad hoc event"}
        assert before["ada", "wifi"] == after["ada", "wifi"]
        assert before["ada", "bluetooth"] < after["ada", "bluetooth"]
        for name in NAMES:
            others = [each for each in published if not each.startswith(name)]
            assert got(name) == others, "each once, in the order in which they were said"
        runtime.stop()
        await running

    live(story)
