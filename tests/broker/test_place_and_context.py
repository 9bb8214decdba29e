"""Place, context and addressing over plain MQTT 5: what the definition of delivery says, said by packets."""

from pathlib import Path

import pytest
from mqtt5 import PubAckReasonCode, SubAckReasonCode
from tests.broker.talker import broker, talking

from nearcast.broker.server import Server

DARMSTADT = b"49.8728,8.6512"
NEARBY = "49.8730,8.6512"  # 22 m away
FAR = "49.8828,8.6512"  # 1.1 km


def test_an_event_nearby_is_delivered_and_one_far_away_is_not(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "walker") as walker, talking(server, "speaker") as speaker:
            await walker.subscribe("traffic/#", properties=[("nc-area", "150")])
            await walker.tell("$nearcast/position", DARMSTADT)
            speaker.publish("traffic/jam", b"far", [("nc-place", FAR)])
            speaker.publish("traffic/jam", b"near", [("nc-place", NEARBY), ("severity", "4")])
            event = await walker.heard()
            assert event.payload == b"near"
            properties = dict(event.user_properties)
            assert properties["severity"] == "4"
            assert properties["nc-place"] == NEARBY
            assert {"nc-id", "nc-published"} <= properties.keys()
            await walker.nothing()

    broker(tmp_path, scenario)


def test_the_area_moves_with_the_client(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "walker") as walker, talking(server, "speaker") as speaker:
            await walker.subscribe("#", properties=[("nc-area", "150")])
            speaker.publish("a", b"position unknown", [("nc-place", NEARBY)])
            await walker.tell("$nearcast/position", FAR.encode())
            speaker.publish("a", b"1 km away", [("nc-place", NEARBY)])
            await walker.tell("$nearcast/position", DARMSTADT)
            speaker.publish("a", b"here", [("nc-place", NEARBY)])
            assert (await walker.heard()).payload == b"here"
            speaker.publish("a", b"no place at all")
            assert (await walker.heard()).payload == b"no place at all"

    broker(tmp_path, scenario)


def test_a_reach_around_the_publisher_goes_to_whoever_is_inside(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "in") as inside, talking(server, "out") as outside, talking(server, "car") as car:
            for talker, place in ((inside, NEARBY), (outside, FAR)):
                await talker.subscribe("warning/#")
                await talker.tell("$nearcast/position", place.encode())
            answer = await car.tell("warning/ice", b"!", [("nc-reach", "800")])
            assert answer.reason_code == PubAckReasonCode.PAYLOAD_FORMAT_INVALID
            assert "position" in (answer.reason_str or "")
            await car.tell("$nearcast/position", DARMSTADT)
            await car.tell("warning/ice", b"!", [("nc-reach", "800")])
            assert (await inside.heard()).payload == b"!"
            await outside.nothing()

    broker(tmp_path, scenario)


def test_addressing_asks_for_one_context_that_meets_all_constraints(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "taxi") as taxi, talking(server, "bus") as bus, talking(server, "police") as police:
            for talker, context in (
                (taxi, b'{"transport": {"path": "/vehicle/motorized/car"}, "free": true}'),
                (bus, b'{"transport": {"path": "/vehicle/motorized/bus"}, "free": false}'),
            ):
                await talker.subscribe("#")
                assert (await talker.tell("$nearcast/context/work", context)).reason_code == PubAckReasonCode.SUCCESS
            await bus.tell("$nearcast/context/private", b'{"free": true}')
            to = "under(transport, '/vehicle/motorized') AND free = true"
            await police.tell("to/drivers", b"1", [("nc-to", to)])
            assert (await taxi.heard()).payload == b"1"
            await bus.nothing()
            await taxi.tell("$nearcast/context/work", b"")
            answer = await police.tell("to/drivers", b"2", [("nc-to", to)])
            assert answer.reason_code == PubAckReasonCode.NO_MATCHING_SUBSCRIBERS

    broker(tmp_path, scenario)


def test_who_accepts_addressed_events_needs_no_subscription(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "car") as car, talking(server, "police") as police:
            await car.tell("$nearcast/context/me", b'{"kind": "car"}')
            await police.tell("stop", b"1", [("nc-to", "kind = 'car'")])
            await car.tell("$nearcast/accept", b"true")
            await police.tell("stop", b"2", [("nc-to", "kind = 'car'")])
            assert (await car.heard()).payload == b"2"

    broker(tmp_path, scenario)


def test_a_content_filter_sees_attributes_and_tags(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader") as reader, talking(server, "speaker") as speaker:
            await reader.subscribe("#", properties=[("nc-where", "severity >= 3 AND A_CONTAINS(tags, ('road'))")])
            speaker.publish("a", b"1", [("severity", "4")])
            speaker.publish("a", b"2", [("severity", "2"), ("nc-tag", "road")])
            speaker.publish("a", b"3", [("severity", "4"), ("nc-tag", "road"), ("nc-tag", "ice")])
            speaker.publish("a", b"4", [("severity", '"4"'), ("nc-tag", "road")])
            assert (await reader.heard()).payload == b"3"
            await reader.nothing()

    broker(tmp_path, scenario)


def test_clients_without_properties_use_the_prefix(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "old", version=4) as old, talking(server, "speaker", version=4) as speaker:
            await old.tell("$nearcast/position", DARMSTADT)
            await old.subscribe("$near/area=150;where=severity%20%3E%3D%203/traffic/#")
            speaker.publish(f"$near/place={NEARBY};severity=2/traffic/jam", b"1")
            speaker.publish(f"$near/place={FAR};severity=4/traffic/jam", b"2")
            speaker.publish(f"$near/place={NEARBY};severity=4/traffic/jam", b"3")
            event = await old.heard()
            assert (event.topic, event.payload) == ("traffic/jam", b"3")
            await old.nothing()

    broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ([("nc-area", "-3")], SubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
        ([("nc-where", "severity >=")], SubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
        ([("nc-since", "yesterday")], SubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
        ([("nc-colour", "red")], SubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
    ],
)
def test_a_subscription_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, properties: list[tuple[str, str]], expected: SubAckReasonCode
) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            answer = await client.subscribe("a", properties=properties)
            assert answer.reason_codes == [expected]
            assert answer.reason_str
            assert (await client.subscribe("b")).reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]

    broker(tmp_path, scenario)


def test_problems_of_messages_without_acknowledgement_can_be_subscribed_to(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            client.publish("$nearcast/position", b"nowhere")
            await client.subscribe("$nearcast/problems")
            client.publish("$nearcast/position", b"nowhere")
            problem = await client.heard()
            assert b"nowhere" in problem.payload
            assert (await client.tell("$nearcast/elsewhere")).reason_code == PubAckReasonCode.TOPIC_NAME_INVALID

    broker(tmp_path, scenario)
