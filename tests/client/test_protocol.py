"""MQTT 5 as the client speaks it, against a model of the broker over a link that loses what is under way."""

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqtt5 import PublishPacket, QoS
from tests.client.model_broker import LossyLink, ModelBroker

from nearcast.client.protocol import Answered, ClientProtocol, Delivered, Dismissed
from nearcast.errors import ProtocolError

QUALITIES = st.sampled_from([1, 2])
SOME = st.integers(1, 4)
ACTIONS = st.one_of(
    st.tuples(st.just("publish"), QUALITIES),
    st.tuples(st.just("deliver"), QUALITIES),
    st.tuples(st.just("up"), SOME),
    st.tuples(st.just("down"), SOME),
    st.tuples(st.just("take"), SOME),
    st.tuples(st.just("break"), st.just(0)),
)


def play(
    link: LossyLink, actions: list[tuple[str, int]], *, session_kept: bool = True
) -> tuple[list[bytes], list[bytes]]:
    """What was published by the client, and what the broker delivered."""
    published, delivered = [], []
    for number, (action, value) in enumerate(actions):
        payload = f"{number}:{value}".encode()
        match action:
            case "publish":
                published.append(payload)
                link.publish(payload, value)
            case "deliver":
                if link.broker.deliver(payload, value, link.receive_maximum):
                    delivered.append(payload)
            case "up":
                link.carry_up(value)
            case "down":
                link.carry_down(value)
            case "take":
                link.take(value)
            case "break":
                link.connect(session_kept=session_kept)
    link.connect(session_kept=session_kept)
    link.settle()
    return published, delivered


def quality(payload: bytes) -> int:
    return int(payload.partition(b":")[2])


@given(st.lists(ACTIONS, max_size=60), st.integers(1, 4))
def test_a_session_that_is_kept_loses_nothing_and_doubles_nothing_of_quality_2(
    actions: list[tuple[str, int]], window: int
) -> None:
    link = LossyLink(ClientProtocol(), ModelBroker(window))
    link.connect(session_kept=False)
    published, delivered = play(link, actions)
    assert set(link.broker.accepted) == set(published)
    assert set(link.taken) == set(delivered)
    for sent, arrived in ((published, link.broker.accepted), (delivered, link.taken)):
        exactly_once = [payload for payload in sent if quality(payload) == 2]
        assert [payload for payload in arrived if quality(payload) == 2] == exactly_once, "once, and in order"
    assert sorted(map(id, link.answered)) == sorted(id(link.flows[payload]) for payload in published), (
        "each answered once"
    )
    assert link.client.statistics().in_flight == link.client.statistics().waiting == 0
    assert not link.broker.in_flight, "everything was acknowledged"


@given(st.lists(ACTIONS, max_size=60), st.integers(1, 4))
def test_a_session_that_is_lost_loses_nothing_that_was_published(actions: list[tuple[str, int]], window: int) -> None:
    link = LossyLink(ClientProtocol(), ModelBroker(window))
    link.connect(session_kept=False)
    published, _ = play(link, actions, session_kept=False)
    assert set(link.broker.accepted) == set(published)
    assert {id(flow) for flow in link.answered} == {id(link.flows[payload]) for payload in published}


@given(st.lists(ACTIONS, max_size=60))
def test_nothing_is_confirmed_before_the_application_has_taken_it(actions: list[tuple[str, int]]) -> None:
    link = LossyLink(ClientProtocol(), ModelBroker(4))
    link.connect(session_kept=False)
    link.take = lambda count: None  # type: ignore[method-assign]  # an application that reads nothing
    for number, (action, value) in enumerate(actions):
        if action == "deliver":
            link.broker.deliver(f"{number}:{value}".encode(), value, link.receive_maximum)
        elif action == "break":
            link.connect(session_kept=True)
        link.carry_up(10)
        link.carry_down(10)
    assert not link.broker.confirmed
    assert len(link.delivered) == len(set(link.delivered)), "what the application still holds is not given to it again"


def established(**properties: int) -> ClientProtocol:
    protocol = ClientProtocol()
    protocol.established(mqtt5.ConnAckPacket(**properties))  # type: ignore[arg-type]
    return protocol


def packets(data: bytes) -> list[mqtt5.Packet]:
    found, view = [], memoryview(data)
    while view:
        packet, used = mqtt5.read(view)
        found.append(packet)
        view = view[used:]
    return found


def writer(payload: bytes, qos: int = 1):  # type: ignore[no-untyped-def]  # noqa: ANN201
    return lambda number: PublishPacket("a", payload, qos=QoS(qos), packet_id=number).write()


def test_what_is_sent_again_says_so_and_keeps_its_packet_id() -> None:
    protocol = established()
    protocol.send(writer(b"x"), 1)
    (first,) = packets(protocol.take_output())
    protocol.lost()
    protocol.established(mqtt5.ConnAckPacket(session_present=True))
    (again,) = packets(protocol.take_output())
    assert isinstance(first, PublishPacket)
    assert isinstance(again, PublishPacket)
    assert (first.duplicate, again.duplicate) == (False, True)
    assert (again.packet_id, again.payload) == (first.packet_id, b"x")


def test_the_receive_maximum_of_the_broker_is_respected_and_the_rest_follows() -> None:
    protocol = established(receive_max=2)
    for number in range(5):
        protocol.send(writer(b"%d" % number), 1)
    sent = packets(protocol.take_output())
    assert [packet.payload for packet in sent if isinstance(packet, PublishPacket)] == [b"0", b"1"]
    protocol.receive(mqtt5.PubAckPacket(1))
    (third,) = packets(protocol.take_output())
    assert isinstance(third, PublishPacket)
    assert third.payload == b"2"


def test_a_broker_that_allows_less_than_before_is_sent_less_again() -> None:
    protocol = established(receive_max=3)
    for number in range(3):
        protocol.send(writer(b"%d" % number), 1)
    protocol.take_output()
    protocol.lost()
    protocol.established(mqtt5.ConnAckPacket(session_present=True, receive_max=1))
    assert len(packets(protocol.take_output())) == 1


def test_a_refusal_of_quality_2_ends_it() -> None:
    protocol = established()
    flow = protocol.send(writer(b"x", 2), 2)
    answer = protocol.receive(mqtt5.PubRecPacket(1, reason_code=mqtt5.PubRecReasonCode.NOT_AUTHORIZED, reason_str="no"))
    assert answer == Answered(flow, (0x87,), "no")
    assert answer.refused
    assert protocol.statistics().in_flight == 0


def test_what_nobody_waits_for_is_not_sent_on_the_next_connection() -> None:
    protocol = established()
    flow = protocol.send(writer(b"x"), 1)
    protocol.take_output()
    protocol.abandon(flow)
    protocol.lost()
    waiting = protocol.send(writer(b"y"), 1)
    protocol.abandon(waiting)
    protocol.established(mqtt5.ConnAckPacket(session_present=True))
    assert protocol.take_output() == b""


def test_another_message_under_the_packet_id_of_one_that_is_held_is_a_new_one() -> None:
    """A broker that was killed may give packet ids of quality 1 anew."""
    protocol = established()
    first = protocol.receive(PublishPacket("a", b"first", qos=QoS.AT_LEAST_ONCE, packet_id=1))
    protocol.lost()
    protocol.established(mqtt5.ConnAckPacket(session_present=True))
    second = protocol.receive(PublishPacket("a", b"second", qos=QoS.AT_LEAST_ONCE, packet_id=1, duplicate=True))
    assert isinstance(first, Delivered)
    assert isinstance(second, Delivered)
    assert first.receipt is not None
    assert second.receipt is not None
    protocol.acknowledge(first.receipt)
    assert protocol.take_output() == b"", "the broker would take it for the second"
    protocol.acknowledge(second.receipt)
    assert [type(packet) for packet in packets(protocol.take_output())] == [mqtt5.PubAckPacket]


@pytest.mark.parametrize("qos", [QoS.AT_LEAST_ONCE, QoS.EXACTLY_ONCE])
def test_what_is_taken_on_the_next_connection_is_acknowledged_when_it_comes_again(qos: QoS) -> None:
    protocol = established()
    delivered = protocol.receive(PublishPacket("a", b"x", qos=qos, packet_id=1))
    assert isinstance(delivered, Delivered)
    assert delivered.receipt is not None
    protocol.lost()
    protocol.established(mqtt5.ConnAckPacket(session_present=True))
    protocol.acknowledge(delivered.receipt)
    assert protocol.take_output() == b""
    assert protocol.receive(PublishPacket("a", b"x", qos=qos, packet_id=1, duplicate=True)) is None
    assert len(packets(protocol.take_output())) == 1


def test_packet_ids_of_a_session_that_is_gone_are_new() -> None:
    protocol = established()
    first = protocol.receive(PublishPacket("a", b"first", qos=QoS.EXACTLY_ONCE, packet_id=1))
    protocol.lost()
    protocol.established(mqtt5.ConnAckPacket(session_present=False))
    second = protocol.receive(PublishPacket("a", b"second", qos=QoS.EXACTLY_ONCE, packet_id=1))
    assert isinstance(first, Delivered)
    assert isinstance(second, Delivered), "another message, not a copy of the first"
    assert first.receipt is not None
    protocol.acknowledge(first.receipt)
    assert protocol.take_output() == b""


def test_packet_ids_are_not_given_twice() -> None:
    protocol = established()
    flows = [protocol.send(writer(b""), 1) for _ in range(65_535)]
    assert len({flow.packet_id for flow in flows}) == 65_535
    late = protocol.send(writer(b"late"), 1)
    assert late.packet_id == 0, "it waits for one to become free"
    protocol.receive(mqtt5.PubAckPacket(7))
    assert late.packet_id == 7


def test_a_release_of_something_unknown_is_answered() -> None:
    protocol = established()
    assert protocol.receive(mqtt5.PubRelPacket(9)) is None
    (answer,) = packets(protocol.take_output())
    assert isinstance(answer, mqtt5.PubCompPacket)
    assert int(answer.reason_code) == 0x92


def test_the_last_word_of_the_broker_is_passed_on() -> None:
    farewell = mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode.SERVER_SHUTTING_DOWN, reason_str="bye")
    assert established().receive(farewell) == Dismissed(0x8B, "bye")


def test_what_only_clients_send_is_an_error_of_the_broker() -> None:
    with pytest.raises(ProtocolError, match="PingReqPacket"):
        established().receive(mqtt5.PingReqPacket())
