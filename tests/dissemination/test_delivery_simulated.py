"""The mechanisms that carry events, in small simulated worlds, against the definition of delivery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.carrier import CarriedEvents, Carrier
from nearcast.dissemination.cloud_broker import BrokerSettings, CloudBroker
from nearcast.dissemination.cloud_client import ClientSettings, CloudClient
from nearcast.dissemination.publisher import LocationRequest
from nearcast.errors import InvalidEvent, InvalidSubscription, ObserverActed
from nearcast.filtering.attraction import Zones
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.area import Box, Circle
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Accuracy, Cancellable
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile, Outage
from nearcast.runtime.simulation.distributions import Constant, Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Network
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import wifi_b
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

HOME = Point(49.8728, 8.6512)
QUICK = BearerProfile(latency=Constant(0.1), bandwidth=None)
EVERY_SECOND = LocationRequest(1.0)


class Application(Component):
    """Subscribes when it starts, remembers what it is told."""

    def __init__(self, *subscriptions: Subscription) -> None:
        self.subscriptions = subscriptions
        self.got: list[str] = []
        self.held: list[Cancellable] = []
        self.host: Host
        self.events: CarriedEvents

    def start(self, host: Host) -> None:
        self.host, self.events = host, host.component(CarriedEvents)
        for subscription in self.subscriptions:
            self.held.append(self.events.subscribe(subscription, lambda event: self.got.append(event.id), EVERY_SECOND))

    def publish(self, name: str, topic: str = "news", **more: Any) -> Event:
        fix = self.host.sensor.fix() if self.host.sensor else None
        event = Event(
            name, topic, self.host.now(), publisher=self.host.name, place=fix.position if fix else None, **more
        )
        self.events.publish(event, local=True)
        return event


RADIAL = MechanismSpec("RADIAL")
TERRITORY = Territory(GeoBox(HOME.lat - 0.1, HOME.lon - 0.1, HOME.lat + 0.1, HOME.lon + 0.1), Zones([]))


class Town:
    """Some people with the same mechanism, and a broker."""

    def __init__(
        self, places: Sequence[tuple[float, float]], *, profile: CellularProfile | None = None, by: str = "cloud"
    ) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {"notifications": [], "reports": [], "subscriptions": []}
        observers = Observers()
        for table, rows in self.rows.items():
            observers.record(table, lambda *row, keep=rows.append: keep(row))
        self.simulation = Simulation(1, observers=observers)
        self.world = World(self.simulation, Plane(HOME), len(places) + 1)
        cellular = CellularNetwork(
            self.simulation,
            profile or CellularProfile(uplink=QUICK, downlink=QUICK),
            infrastructure=["broker"],
            check_wire=True,
        )
        radio = RadioNetwork(self.simulation, wifi_b(), self.world.motion, check_wire=True)
        self.networks: list[Network] = [cellular, radio]
        self.by = by
        self.applications: dict[str, Application] = {}
        self.hosts: list[SimulatedHost] = []
        for node, place in enumerate(places):
            self.hosts.append(self.world.add(f"c{node}", self._builder(f"c{node}"), self.networks))
            self.world.motion.put(node, *place)
        self.broker = self.world.add("broker", self._broker, [cellular])
        self.broker.join()

    def join(self, node: int, *subscriptions: Subscription) -> Application:
        self.applications[f"c{node}"] = Application(*subscriptions)
        self.hosts[node].join()
        return self.applications[f"c{node}"]

    def after(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def broker_statistics(self) -> Any:
        assert self.broker.host is not None
        return self.broker.host.component(CloudBroker).statistics()

    def _broker(self) -> list[Component]:
        settings = BrokerSettings(RADIAL, forget_after=20.0)
        return [HostEngine(), TransitionCoordinator(), CloudBroker(TERRITORY, settings)]

    def _builder(self, name: str) -> Callable[[], list[Component]]:
        def build() -> list[Component]:
            carriers: list[Carrier] = []
            if self.by in ("cloud", "both"):
                carriers.append(CloudClient("broker", TERRITORY, ClientSettings(RADIAL, keep_alive=5.0)))
            if self.by in ("broadcast", "both"):
                carriers.append(AdHoc(AdHocSettings(MechanismSpec("BROADCAST"))))
            return [HostEngine(), TransitionAgent(), CarriedEvents(carriers), *carriers, self.applications[name]]

        return build


NEAR = Subscription("news", area=Circle(125), no_local=True)


def test_the_cloud_delivers_to_whoever_is_near_and_to_nobody_else() -> None:
    town = Town([(0, 0), (100, 0), (200, 0)])
    here, near, far = (town.join(node, NEAR) for node in range(3))
    town.after(1.0)
    here.publish("e1")
    town.after(1.0)
    assert (here.got, near.got, far.got) == ([], ["e1"], [])
    [(time, event, client, path, outcome, delay, hops)] = town.rows["notifications"]
    assert (event, client, path, outcome, hops) == ("e1", "c1", "cloud", "delivered", 2)
    assert delay == 200_000 == time - 1_000_000


def test_a_broadcast_reaches_those_in_range_who_check_for_themselves() -> None:
    town = Town([(0, 0), (80, 0), (0, 80), (120, 0)], by="broadcast")
    here, near, bored, far = (town.join(n, NEAR if n != 2 else Subscription("sport")) for n in range(4))
    town.after(1.0)
    here.publish("e1")
    town.after(1.0)
    assert (here.got, near.got, bored.got, far.got) == (
        [],
        ["e1"],
        [],
        [],
    )  # 120 m is within interest, not within range
    assert {(row[2], row[4]) for row in town.rows["notifications"]} == {("c1", "delivered"), ("c2", "unwanted")}


def test_over_two_ways_the_application_sees_an_event_once() -> None:
    town = Town([(0, 0), (80, 0)], by="both")
    here, near = town.join(0, NEAR), town.join(1, NEAR)
    town.after(1.0)
    here.publish("e1")
    town.after(1.0)
    assert near.got == ["e1"]
    assert [(row[3], row[4]) for row in town.rows["notifications"]] == [("wifi", "delivered"), ("cloud", "duplicate")]


def test_copies_are_recognised_for_a_minute_and_then_forgotten() -> None:
    town = Town([(0, 0)])
    here = town.join(0, Subscription("news"))
    event = Event("e1", "news", town.simulation.now(), publisher="c0")
    inbox = here.events.inbox
    for minutes, copies in ((0.0, 1), (0.9, 1), (0.05, 1), (2.1, 2)):
        town.after(60 * minutes)
        inbox.receive(event, "wifi", 1)
        assert here.got == ["e1"] * copies
    assert (inbox.statistics().delivered, inbox.statistics().duplicates) == (2, 2)


def test_content_is_filtered_at_the_broker() -> None:
    town = Town([(0, 0), (50, 0)])
    here, near = town.join(0), town.join(1, Subscription("news", where="severity >= 3", area=Circle(125)))
    town.after(1.0)
    here.publish("mild", attributes={"severity": 2})
    here.publish("bad", attributes={"severity": 4}, tags=["fire"], payload=b"x")
    town.after(1.0)
    assert near.got == ["bad"]
    assert town.broker_statistics().notifications == 1


def test_who_cancels_a_subscription_hears_no_more_and_reports_no_more() -> None:
    town = Town([(0, 0), (50, 0)])
    here, near = town.join(0), town.join(1, NEAR)
    town.after(5.0)
    near.held[0].cancel()
    near.held[0].cancel()
    town.after(0.5)
    reports = len(town.rows["reports"])
    here.publish("e1")
    town.after(10.0)
    assert near.got == []
    assert len(town.rows["reports"]) == reports
    assert [row[3] for row in town.rows["subscriptions"]] == ["subscribed", "unsubscribed"]


def test_who_leaves_is_forgotten_at_once_and_who_fails_after_a_while() -> None:
    town = Town([(0, 0), (50, 0), (60, 0)])
    for node in range(3):
        town.join(node, NEAR)
    town.after(1.0)
    town.hosts[1].leave()
    town.hosts[2].fail()
    town.after(1.0)
    town.applications["c0"].publish("e1")
    town.after(1.0)
    statistics = town.broker_statistics()
    assert (statistics.clients, statistics.notifications, statistics.forgotten) == (
        2,
        1,
        0,
    )  # the failed one is still sent to
    town.after(30.0)
    assert (town.broker_statistics().clients, town.broker_statistics().forgotten) == (1, 1)


def test_a_client_that_the_broker_forgot_is_asked_and_hears_again() -> None:
    bearer = BearerProfile(latency=Constant(0.1), bandwidth=None)
    profile = CellularProfile(uplink=bearer, downlink=bearer, outages=(Outage(5.0, 60.0, frozenset({"c1"})),))
    town = Town([(0, 0), (50, 0)], profile=profile)
    here, near = town.join(0), town.join(1, NEAR, Subscription("sport", id="sport"))
    town.after(55.0)
    assert town.broker_statistics().forgotten >= 1
    town.after(10.0)
    here.publish("e1")
    town.after(1.0)
    assert near.got == ["e1"]


def test_who_needs_no_position_and_says_nothing_is_not_forgotten() -> None:
    town = Town([(0, 0), (50, 0)])
    here, near = town.join(0), town.join(1)
    near.held.append(near.events.subscribe(Subscription("news", id="news"), lambda event: near.got.append(event.id)))
    town.after(200.0)
    here.publish("e1")
    town.after(1.0)
    assert near.got == ["e1"]
    alive = [row for row in town.networks[0].traffic() if row.kind == "alive" and row.direction == "sent"]
    # One at the end of each period of 5 s; who has no subscription has nothing to tell.
    assert [(row.host, row.messages) for row in alive] == [("c1", 40)]


def test_a_subscription_without_a_place_is_made_good_too() -> None:
    profile = CellularProfile(uplink=QUICK, downlink=QUICK, outages=(Outage(5.0, 60.0, frozenset({"c1"})),))
    town = Town([(0, 0), (50, 0)], profile=profile)
    here, near = town.join(0), town.join(1)
    near.held.append(near.events.subscribe(Subscription("news", id="news"), lambda event: near.got.append(event.id)))
    town.after(61.0)
    assert town.broker_statistics().forgotten == 1
    for second in range(12):  # it talks, but not of its subscriptions
        near.publish(f"own {second}", "other")
        town.after(1.0)
    here.publish("e1")
    town.after(1.0)
    assert near.got == ["e1"]


def test_the_records_tell_that_a_client_was_forgotten() -> None:
    town = Town([(0, 0)])
    town.join(0, NEAR)
    town.after(5.5)
    town.hosts[0].fail()
    town.after(60.0)
    assert town.broker_statistics().clients == 0
    assert [row[3] for row in town.rows["subscriptions"]] == ["subscribed", "unsubscribed"]
    assert town.rows["reports"][-1][1:] == ("c0", None, None)
    assert town.rows["reports"][-1][0] == town.rows["subscriptions"][-1][0]


def test_a_subscription_that_was_lost_is_made_good() -> None:
    # Everything that c1 says in the first half second is lost, the subscription among it.
    profile = CellularProfile(uplink=QUICK, downlink=QUICK, outages=(Outage(0.0, 0.5, frozenset({"c1"})),))
    town = Town([(0, 0), (50, 0)], profile=profile)
    here, near = town.join(0), town.join(1, NEAR)
    town.after(5.0)
    here.publish("e1")
    town.after(1.0)
    assert near.got == ["e1"]


def test_an_unsubscription_that_was_lost_is_made_good_and_then_there_is_peace() -> None:
    profile = CellularProfile(uplink=QUICK, downlink=QUICK, outages=(Outage(5.0, 6.0, frozenset({"c1"})),))
    town = Town([(0, 0), (50, 0)], profile=profile)
    here, near = town.join(0), town.join(1, NEAR, Subscription("sport", id="sport"))
    town.after(5.5)
    near.held[1].cancel()
    town.after(10.0)
    here.publish("e1", "sport")
    town.after(20.0)
    assert town.broker_statistics().notifications == 0
    asked = [row for row in town.networks[0].traffic() if row.kind == "subscribe again" and row.direction == "sent"]
    assert [row.messages for row in asked] == [1]


def test_a_report_that_was_overtaken_does_not_bring_back_an_old_position() -> None:
    slow = BearerProfile(latency=Uniform(0.0, 3.0), bandwidth=None)
    town = Town([(0, 0), (2_000, 0)], profile=CellularProfile(uplink=slow, downlink=QUICK))
    town.join(0, NEAR)
    for step in range(60):
        town.world.motion.put(0, 20.0 * step, 0.0)
        town.after(1.0)
    lons = [row[3] for row in town.rows["reports"]]
    assert len(lons) > 20
    assert lons == sorted(lons)


@given(
    st.lists(
        st.tuples(
            st.floats(-300, 300), st.floats(-300, 300), st.floats(0, 400), st.sampled_from(["news", "#", "sport"])
        ),
        min_size=2,
        max_size=8,
    )
)
def test_the_cloud_delivers_what_the_definition_says(people: list[tuple[float, float, float, str]]) -> None:
    town = Town([(x, y) for x, y, _, _ in people])
    subscriptions = [Subscription(topic, area=Circle(radius)) for _, _, radius, topic in people]
    applications = [town.join(node, subscription) for node, subscription in enumerate(subscriptions)]
    town.after(2.0)
    history = History()
    for node, (x, y, _, _) in enumerate(people):
        history.moved(f"c{node}", 0, town.world.plane.to_point(x, y))
        history.subscribed(f"c{node}", 0, subscriptions[node])
    event = applications[0].publish("e1")
    history.published(event)
    town.after(2.0)
    expected = receivers(history, event, event.published)
    assert {name for name, application in town.applications.items() if application.got == ["e1"]} == expected


def test_what_cannot_be_sent_yet_is_refused_and_not_sent_in_part() -> None:
    town = Town([(0, 0)])
    here = town.join(0)
    town.after(1.0)
    with pytest.raises(InvalidEvent, match="'reach'"):
        here.publish("e1", reach=Circle(10, HOME))
    with pytest.raises(InvalidEvent, match="attribute 'where'"):
        here.publish("e2", attributes={"where": HOME})
    box = Box(south=0, west=0, north=1, east=1)
    with pytest.raises(InvalidSubscription, match="only circles around the client"):
        here.events.subscribe(Subscription(area=box), lambda _event: None)


def test_the_sensor_is_asked_for_the_most_that_anyone_needs_and_no_longer_than_needed() -> None:
    town = Town([(0, 0)])
    here = town.join(0)
    slow = here.events.subscribe(Subscription("a", area=Circle(1), id="a"), print, LocationRequest(8.0, Accuracy.LOW))
    town.after(16.5)
    assert len(town.rows["reports"]) == 3  # 0, 8, 16 s
    fast = here.events.subscribe(Subscription("b", area=Circle(1), id="b"), print, LocationRequest(2.0))
    town.after(4.0)
    assert len(town.rows["reports"]) == 5  # 16.5, 18.5 s
    fast.cancel()
    slow.cancel()
    town.after(20.0)
    assert len(town.rows["reports"]) == 5


@pytest.mark.parametrize("word", ["subscribe", "unsubscribe"])
def test_observers_neither_subscribe_nor_unsubscribe(word: str) -> None:
    town = Town([(0, 0)], by="broadcast")
    here = town.join(0, NEAR)

    def act(_now: int) -> None:
        if word == "subscribe":
            here.events.subscribe(NEAR, print)
        else:
            here.held[0].cancel()

    town.simulation.watch(1.0, act)
    with pytest.raises(ObserverActed, match=f"tried to {word}"):
        town.after(2.0)
    assert len(here.events.inbox.interests) == 1
