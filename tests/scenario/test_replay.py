"""Doing again what a log says."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.scenario.worlds import PLANE, START, Diary, Recorded, SmallWorld

from nearcast.dissemination.publisher import EventService, LocationRequest
from nearcast.errors import InvalidTrace
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.random import RandomStreams
from nearcast.runtime.simulation.plane import Bounds
from nearcast.scenario.operations import Operation, read_log, write_log
from nearcast.scenario.reading import parse
from nearcast.scenario.replay import Replay
from nearcast.scenario.schema import Scenario
from nearcast.scenario.workload import EventIds
from nearcast.scenario.workloads import Workloads

LOG = """\
time,client,operation,id,topic,lat,lon,local,radius
0,client-0,subscribe,near,market/#,,,,150
1,client-1,publish,,market/fruit,49.87,8.65,,
1,client-1,publish,,market/bread,,,true,
2.5,client-0,publish,mine,news,,,,
4,client-0,unsubscribe,near,,,,,
5,client-0,subscribe,all,news,,,,
"""


def workloads_of(scenario: Scenario) -> Workloads:
    return Workloads(
        scenario,
        clients=scenario.clients.names(),
        random=RandomStreams(1),
        plane=PLANE,
        bounds=Bounds.around(100.0, 100.0),
        points=(),
        published=lambda event, kind: None,
    )


def replayed(tmp_path: Path, text: str = LOG, clients: int = 2) -> SmallWorld:
    (tmp_path / "log.csv").write_text(text)
    scenario = parse(
        "[[workload]]\nkind = 'log'\nfile = 'log.csv'", folder=tmp_path, changes={"clients.number": clients}
    )
    return SmallWorld(scenario.clients.names(), workloads_of(scenario).applications)


def told(diary: Diary) -> list[tuple[float, str, str, str]]:
    """Time, client, what, and the id of the event or subscription."""
    return [
        ((one.time - START) / MICROSECONDS, one.client, one.what, (one.event or one.subscription).id)  # type: ignore[union-attr]
        for one in diary.heard
    ]


def test_operations_happen_at_their_times_in_their_order(tmp_path: Path) -> None:
    world = replayed(tmp_path)
    world.join()
    world.run(10.0)
    assert told(world.diary) == [
        (0.0, "client-0", "subscribe", "near"),
        (1.0, "client-1", "publish", "client-1/1"),
        (1.0, "client-1", "publish", "client-1/2"),
        (2.5, "client-0", "publish", "mine"),
        (4.0, "client-0", "unsubscribe", "near"),
        (5.0, "client-0", "subscribe", "all"),
    ]


def test_places_and_requests_are_those_of_the_log(tmp_path: Path) -> None:
    world = replayed(tmp_path)
    world.join()
    world.run(10.0)
    given, local, nowhere = world.diary.published()
    assert given.event is not None
    assert given.event.place is not None
    assert (given.event.place.lat, given.event.place.lon, given.local) == (49.87, 8.65, False)
    assert local.event is not None
    assert (local.event.place, local.local) == (PLANE.to_point(10.0, 0.0), True)
    assert nowhere.event is not None
    assert (nowhere.event.place, nowhere.local) == (None, False)
    around, everywhere = (one for one in world.diary.heard if one.what == "subscribe")
    assert around.request == LocationRequest(5.0)
    assert everywhere.request is None


def test_who_joins_late_is_subscribed_but_has_missed_to_publish(tmp_path: Path) -> None:
    world = replayed(tmp_path)
    world.run(3.0)
    world.join()
    world.run(3.5)
    assert told(world.diary) == [(3.0, "client-0", "subscribe", "near")]
    host = world.hosts["client-1"].host
    assert host is not None
    statistics = host.component(Replay).statistics()
    assert (statistics.done, statistics.missed, statistics.received) == (0, 2, 0)


def test_who_returns_subscribes_again_to_what_it_is_subscribed_to_by_then(tmp_path: Path) -> None:
    world = replayed(tmp_path)
    world.join()
    world.run(4.5)
    world.hosts["client-0"].fail()
    world.run(6.0)
    world.hosts["client-0"].join()
    world.run(7.0)
    # `near` ended at 4 s, and nobody is told of it; `all` began while the client was away.
    late = [one for one in told(world.diary) if one[0] == 6.0]
    assert late == [(6.0, "client-0", "subscribe", "all")]


def test_a_log_of_unknown_clients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace) as refused:
        replayed(tmp_path, "time,client,operation,topic\n0,ada,publish,x\n")
    assert str(refused.value) == "log.csv: there is no client 'ada' in this scenario; they are client-0 to client-1"


def test_ids_of_a_log_are_not_given_to_other_events() -> None:
    ids = EventIds()
    assert ids.reserve("client-0/2")
    assert not ids.reserve("client-0/2")
    assert [ids.next("client-0") for _ in range(3)] == ["client-0/1", "client-0/3", "client-0/4"]


def test_two_logs_with_the_same_event_are_refused(tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("time,client,operation,id,topic\n0,client-0,publish,e,x\n")
    logs = "".join(f"[[workload]]\nkind = 'log'\nfile = '{name}'\n" for name in ("one.csv", "two.csv"))
    scenario = parse(logs, folder=tmp_path, changes={"clients.number": 2})
    with pytest.raises(InvalidTrace, match=r"two\.csv: event 'e' is in another log"):
        workloads_of(scenario)


class Fickle(Component):
    """Replaces a subscription, and cancels both."""

    def start(self, host: Host) -> None:
        service = host.component(EventService)  # type: ignore[type-abstract]
        for held in [service.subscribe(Subscription(topic, id="s"), lambda event: None) for topic in ("a", "b")]:
            held.cancel()


def test_a_subscription_that_was_replaced_ends_once() -> None:
    operations: list[Operation] = []
    Recorded(("client-0",), lambda _name: [Fickle()], operations).join()
    assert [(one.operation, one.topic) for one in operations] == [
        ("subscribe", "a"),
        ("subscribe", "b"),
        ("unsubscribe", ""),
    ]


class Chatter(Component):
    """An application that does a bit of everything."""

    def start(self, host: Host) -> None:
        self._host = host
        self._service = host.component(EventService)  # type: ignore[type-abstract]
        self._ids = EventIds()
        wanted = Subscription("talk/#", "volume > 3", Circle(20.0), id="talk", no_local=True)
        held = self._service.subscribe(wanted, lambda event: None, LocationRequest(5.0))
        host.timers.after(4.2, held.cancel)
        host.timers.every(1.3, self._talk)

    def _talk(self) -> None:
        assert self._host.sensor is not None
        name, fix = self._ids.next(self._host.name), self._host.sensor.fix()
        place = fix.position if fix and name.endswith(("1", "3")) else None
        event = Event(
            name, "talk/loud", self._host.now(), {"volume": 7}, ["a", "b"], bytes(9), self._host.name, place=place
        )
        self._service.publish(event, local=name.endswith("3"))


def test_what_was_recorded_is_replayed_alike(tmp_path: Path) -> None:
    operations: list[Operation] = []
    names = ("client-0", "client-1", "client-2")
    first = Recorded(names, lambda _name: [Chatter()], operations)
    first.join()
    first.run(8.0)
    assert {operation.operation for operation in operations} == {"publish", "subscribe", "unsubscribe"}

    write_log(tmp_path / "log.jsonl", operations)
    log = read_log(tmp_path / "log.jsonl")
    repeated: list[Operation] = []
    second = Recorded(names, lambda name: [replay(log, name)], repeated)
    second.join()
    second.run(8.0)
    # At one instant, the order among clients is not part of what a log says.
    by_time = sorted(operations, key=lambda operation: (operation.time, operation.client))
    assert sorted(repeated, key=lambda operation: (operation.time, operation.client)) == by_time
    assert {event.id: event for event in first.diary.events()} == {event.id: event for event in second.diary.events()}


def replay(log: Sequence[Operation], client: str) -> Replay:
    mine = [operation for operation in log if operation.client == client]
    return Replay(
        mine, run_start=START, request=LocationRequest(5.0), ids=EventIds(), published=lambda event, kind: None
    )
