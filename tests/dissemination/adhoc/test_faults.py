"""Loss, partitions, hosts that fail and return, and input that nobody should have sent."""

from random import Random
from typing import Any

import msgspec
import pytest
from tests.dissemination.adhoc.village import Listener, Village, chain, clique, nowhere, of

from nearcast.dissemination.adhoc.carrier import PORT, AdHoc, AdHocSettings
from nearcast.dissemination.adhoc.messages import AdHocEvents, Carried, Hello, Mark
from nearcast.dissemination.adhoc.registry import MECHANISMS, manner_of
from nearcast.dissemination.adhoc.spreading import Spreading
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.wire import EventMessage, message_of
from nearcast.errors import InvalidEvent, InvalidPlan, UnknownName
from nearcast.model.area import Circle
from nearcast.runtime.host import Component
from nearcast.runtime.messages import Codec, encoded
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import NULL, MechanismSpec

LEFT, RIGHT = range(5), range(5, 10)


def divided(mechanism: MechanismSpec) -> Village:
    """Two groups, of which the first two hosts of each hear each other, once the partition is over."""
    edges = [*clique(LEFT), *clique(RIGHT), (0, 5), (1, 6)]
    village = Village(nowhere(10), mechanism, edges=edges)
    whole = village.network.hears
    village.network.hears = lambda one, other: whole(one, other) and (one in LEFT) == (other in LEFT)
    village.after(0.5)
    village.publish(4, "left")
    village.publish(9, "right")
    village.after(1.0)
    assert village.reached("left") == {0, 1, 2, 3}
    assert village.reached("right") == {5, 6, 7, 8}
    village.network.hears = whole
    village.after(1.0)
    return village


def test_partitions_that_meet_exchange_what_they_have_and_it_is_counted() -> None:
    village = divided(of("HYPERG", forwarders=100.0))
    assert village.reached("left") == set(range(10)) - {4}
    assert village.reached("right") == set(range(10)) - {9}
    repeated = village.total("repeated")
    assert repeated >= 2
    # Then they have something in common, and all is quiet.
    village.after(5.0)
    assert village.total("repeated") == repeated
    for node in range(10):
        assert len(village.listener(node).got) == len(set(village.listener(node).got))


@pytest.mark.parametrize("mechanism", [of("FLOODING"), of("PLAN-B"), of("HYPERG", keep=0.0)])
def test_others_do_not(mechanism: MechanismSpec) -> None:
    village = divided(mechanism)
    assert village.reached("left") == {0, 1, 2, 3}
    assert village.total("repeated") == 0


def test_events_are_kept_for_a_while_only() -> None:
    edges = [(0, 1), (1, 2)]
    for wait, expected in ((1.0, {1, 2}), (4.0, {1})):
        village = Village(nowhere(3), of("HYPERG", keep=2.0), edges=edges)
        village.world.hosts["h2"].fail()
        village.after(0.5)
        village.publish(0, "e")
        village.after(wait)
        village.join(2)
        village.after(1.0)
        assert village.reached("e") == expected


def test_who_fails_and_returns_has_forgotten_all_and_takes_part_again() -> None:
    village = Village(nowhere(3), of("FLOODING"), edges=chain(3))
    village.publish(0, "e")
    village.after(1.0)
    village.world.hosts["h1"].fail()
    village.publish(0, "missed")
    village.after(1.0)
    assert village.reached("missed") == set()
    village.join(1)
    village.publish(0, "again")
    village.after(1.0)
    assert village.reached("again") == {1, 2}
    assert village.listener(1).got == ["again"]
    assert village.listener(2).got == ["e", "again"]


def test_who_fails_while_it_hesitates_sends_nothing() -> None:
    village = Village(nowhere(3), of("FLOODING", hesitation=1.0), edges=chain(3))
    village.publish(0, "e")
    village.after(0.002)
    village.world.hosts["h1"].fail()
    village.after(2.0)
    village.join(1)
    village.after(2.0)
    assert village.senders("e") == [0]


def test_flooding_survives_loss_where_there_are_many_ways() -> None:
    village = Village(nowhere(20), of("FLOODING"), edges=clique(range(20)))
    random = Random(4)
    village.network.lost = lambda _sender, _receiver: random.random() < 0.5
    for number in range(20):
        village.publish(number, f"e{number}")
        village.after(0.1)
    reached = [len(village.reached(f"e{number}")) for number in range(20)]
    assert min(reached) == 19, "the chance to miss nineteen copies is one in half a million"
    village = Village(nowhere(20), of("BROADCAST"), edges=clique(range(20)))
    village.network.lost = lambda _sender, _receiver: random.random() < 0.5
    village.publish(0, "e")
    village.after(0.1)
    assert 2 <= len(village.reached("e")) <= 17


# Bad input


def injected(village: Village, message: Any) -> None:
    village.adhoc(1)._receive("h0", message)


def carried(**more: Any) -> Carried:
    event = message_of(Village(nowhere(1), NULL).event(0, "bad"))
    return Carried(msgspec.structs.replace(event, **more), 1)


@pytest.mark.parametrize(
    "message",
    [
        AdHocEvents(Mark(of("FLOODING")), (carried(lat=100.0),)),
        AdHocEvents(Mark(of("FLOODING")), (carried(topic=""),)),
        AdHocEvents(Mark(of("FLOODING")), (carried(),), 100.0, 0.0),
        AdHocEvents(Mark(NULL, 9, "h9"), (carried(),)),
        Hello(Mark(NULL, 9, "h9")),
    ],
)
def test_what_cannot_be_is_dropped_and_counted(message: AdHocEvents | Hello) -> None:
    village = Village(nowhere(2), of("FLOODING"), edges=chain(2))
    injected(village, message)
    village.publish(0, "good")
    village.after(1.0)
    assert village.adhoc(1).statistics().malformed == 1
    assert village.listener(1).got == ["good"]
    assert village.adhoc(1).running == of("FLOODING")


def test_bytes_that_break_the_declarations_are_no_message() -> None:
    codec: Codec[Any] = Codec(AdHocEvents, Hello)
    good = AdHocEvents(Mark(of("GOSSIP")), (carried(),))
    assert codec.decoded(encoded(good)) == good
    for bad in (
        AdHocEvents(Mark(of("GOSSIP"), -1), (carried(),)),
        AdHocEvents(Mark(of("GOSSIP")), (Carried(carried().event, 0),)),
        Hello(Mark("GOSSIP")),  # type: ignore[arg-type]
    ):
        with pytest.raises(msgspec.DecodeError):
            codec.decoded(encoded(bad))


def test_events_that_cannot_be_sent_are_refused_and_leave_no_trace() -> None:
    village = Village(nowhere(2), of("FLOODING"), edges=chain(2))
    with pytest.raises(InvalidEvent, match="reach"):
        village.publish(0, "e", reach=Circle(100))
    village.publish(0, "e")
    village.after(1.0)
    assert village.reached("e") == {1}


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (of("GOSIP"), "there is no ad hoc mechanism 'GOSIP'; there are GOSSIP"),
        (of("GOSSIP", q=1), "GOSSIP: .*`q`; its parameters are p, hesitation"),
        (of("GOSSIP", p=1.1), r"GOSSIP: .*<= 1"),
        (of("GOSSIP", p="high"), "GOSSIP: .*float"),
        (of("HYPERG", copies=0), "HYPERG: .*>= 1"),
        (of("PLAN-B", range=0.0), "PLAN-B: .*> 0"),
        (of("BROADCAST", p=0.4), "BROADCAST: .*`p`; its parameters are none"),
    ],
)
def test_mechanisms_that_cannot_be_are_refused(spec: MechanismSpec, complaint: str) -> None:
    with pytest.raises(InvalidPlan, match=complaint):
        manner_of(spec)


def test_a_host_starts_with_a_mechanism_that_there_is() -> None:
    with pytest.raises(Exception, match="no ad hoc mechanism"):
        Village(nowhere(1), of("TELEPATHY"))
    with pytest.raises(UnknownName, match="no link 'bluetooth'"):
        AdHoc(AdHocSettings(of("GOSSIP")), "bluetooth").start(Village(nowhere(1), NULL).host(0))


def test_two_instances_work_side_by_side_on_two_ports() -> None:
    """As for gateways: another proxy, another port, another mechanism."""

    class Two(Village):
        def _build(self) -> list[Component]:
            local = AdHoc(self.settings)
            gateway = AdHoc(AdHocSettings(of("BROADCAST"), name="gw", port=4, geofence=False), path="gateway")
            service = CarriedEvents([local, gateway])
            return [HostEngine(), service, local, gateway, Listener(self.subscriptions)]

        def adhoc(self, node: int) -> AdHoc:
            return next(it for it in self.host(node).components if isinstance(it, AdHoc) and it.settings.name == "lc")

    village = Two(nowhere(3), of("FLOODING"), edges=chain(3))
    gateway = next(it for it in village.host(0).components if isinstance(it, AdHoc) and it.settings.name == "gw")
    gateway.disseminate(message_of(village.event(0, "from the cloud")))
    village.adhoc(0).disseminate(message_of(village.event(0, "local"), local=True))
    village.after(1.0)
    assert village.reached("from the cloud") == {1}
    assert village.reached("local") == {1, 2}
    paths = {(event, path) for _, event, _, path, *_ in village.rows["notifications"]}
    assert paths == {("from the cloud", "gateway"), ("local", "wifi")}
    assert (gateway.settings.port, village.adhoc(0).settings.port) == (4, PORT)


def test_every_mechanism_of_the_house_can_be_made_and_is_explained() -> None:
    assert list(MECHANISMS) == ["GOSSIP", "FLOODING", "HYPERG", "PLAN-B", "BROADCAST", "UNICAST"]
    village = Village(nowhere(1), NULL)
    for name, entry in MECHANISMS.items():
        village.exchange(0, of(name))
        assert isinstance(village.adhoc(0)._proxy.active, Spreading)
        assert len(entry.about) > 10


@pytest.mark.parametrize(("hops", "clock", "initiator"), [(2**64 - 1, 0, ""), (1, 2**64 - 1, "eve"), (1, 1, "e" * 256)])
def test_numbers_that_could_not_be_sent_on_are_not_understood(hops: int, clock: int, initiator: str) -> None:
    """Live, what a callback raises ends its process: one datagram would end everybody in range."""
    mark = Mark(of("FLOODING"), clock, initiator)
    message = AdHocEvents(mark, (Carried(EventMessage("e", "news", 0, "eve", None, None, b""), hops),))
    with pytest.raises(msgspec.DecodeError):
        Codec(AdHocEvents, Hello).decoded(encoded(message))
