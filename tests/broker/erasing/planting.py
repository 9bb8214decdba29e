"""A person that leaves a marker wherever a client can leave one, and others who do not."""

from __future__ import annotations

import asyncio
import json
import secrets
import urllib.request
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from mqtt5 import ConnAckPacket, ConnectPacket, PubAckPacket, QoS, SubAckPacket, SubscribePacket, TopicFilter, Will
from tests.broker.erasing.markers import MARKER
from tests.broker.talker import Talker
from tests.served import ServedBroker

USER = f"{MARKER}-user"
CLIENT = f"{MARKER}-phone"
PASSWORD = "a password"  # noqa: S105 - of nobody
EXPIRY = 3_600


def marked(what: str) -> str:
    return f"{MARKER}-{what}"


async def plant(server: ServedBroker, user: str | None = USER) -> None:
    """Everything that a client can say, and that the broker writes down."""
    time = secrets.token_hex(4)  # ids are used once
    login: dict[str, Any] = {} if user is None else {"username": user, "password": PASSWORD.encode()}
    other = await Talker.open(server)
    await other.connect("other", username="bob", password=PASSWORD.encode(), session_expiry_interval=EXPIRY)
    await other.subscribe("#", 1)
    watching = await Talker.open(server)
    await watching.connect(CLIENT + "-2", session_expiry_interval=EXPIRY, **login)
    await watching.subscribe("news/#", 1, [("nc-area", "500")])
    await watching.subscribe(marked("topic/#"), 1, [("nc-where", f"name = '{marked('filter')}'")])
    await watching.subscribe("past/#", 1, [("nc-since", "-2h"), ("nc-name", marked("name"))])
    await told(watching, "$nearcast/position", b"49.87,8.65")
    person = await Talker.open(server)
    will = Will(
        marked("will/topic"),
        payload=marked("will payload").encode(),
        qos=QoS.AT_LEAST_ONCE,
        retain=True,
        will_delay_interval=EXPIRY,
        user_properties=[("name", marked("of a will"))],
    )
    await person.connect(CLIENT, session_expiry_interval=EXPIRY, will=will, **login)
    await told(person, "$nearcast/position", b"49.8712345,8.6512345")
    await told(person, f"$nearcast/context/{marked('contextname')}", msgspec.json.encode({"name": marked("context")}))
    await told(person, f"$nearcast/announce/{marked('announced')}", b"500")
    properties = [
        ("nc-id", marked(f"id {time}")),
        ("nc-place", "here"),
        ("name", marked("attribute")),
        ("nc-tag", marked("tag")),
    ]
    await told(person, marked("topic"), marked("payload").encode(), properties)
    await told(
        person,
        marked("retained"),
        marked("kept").encode(),
        retain=True,
        content_type=marked("content type"),
        response_topic=marked("response"),
        correlation_data=marked("correlation").encode(),
    )
    person.publish(marked("retained0"), marked("kept without a journal").encode(), retain=True)
    timed = [
        ("nc-id", marked(f"future {time}")),
        ("nc-reach", "500"),
        ("nc-place", "here"),
        ("nc-when", "overlaps(time, 'now', '+1h')"),
        ("nc-to", "kind = 'x'"),
    ]
    await told(person, marked("moment"), marked("for whoever comes").encode(), timed)
    await told(person, marked("gone"), b"...", [("nc-id", marked(f"taken {time}"))])
    await told(person, "$nearcast/unpublish", marked(f"taken {time}").encode())
    await observed(person, other, [] if user is None else [user])
    await refused(server, person, login)
    if user is not None:  # without a client id of its own: the map forgets it with its session
        nameless = await Talker.open(server)
        await nameless.connect("", **login)
        await told(nameless, "news/nameless", marked("of a client without an id").encode())
        nameless.close()
        await asyncio.to_thread(post, server, user)
    await told(other, "$nearcast/position", b"49.8701,8.65")
    await told(other, "news/of others", b"stays", [("nc-id", f"stays {time}"), ("nc-place", "here")])
    await told(other, "kept/of others", b"retained stays", retain=True)
    for each in (person, watching, other):
        each.close()  # without a goodbye: will and sessions wait


async def observed(person: Talker, other: Talker, users: list[str]) -> None:
    """Each lets the other one observe it, by name; notices wait for the other one, who is told of the person by name, too."""
    names = {"users": [*users, "carl"], "clients": [CLIENT, "phone of carl"]}
    await told(other, "$nearcast/observable", msgspec.json.encode(names))
    friends = {"users": ["bob", marked("friend")], "clients": ["other", marked("tablet")]}
    await told(person, "$nearcast/observable", msgspec.json.encode(friends))
    fence = ("nc-area", '{"circle": 100, "at": [8.651, 49.871]}')
    for pattern, *properties in (
        ("$nearcast/presence/+/+", fence, ("nc-stay", "1h")),
        (f"$nearcast/presence/enter/{CLIENT}", fence),
        ("$nearcast/presence/near/+", ("nc-area", "50"), ("nc-around", CLIENT)),
    ):
        await asks(other, pattern, properties)
    now = datetime.now(UTC)
    for lat, back in ((49.88, 2), (49.8712345, 1), (49.89, 3)):  # leaves, comes again, and one report is late
        fix = {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [8.6512345, lat]},
            "properties": {"time": (now - timedelta(seconds=back)).isoformat()},
        }
        await told(person, "$nearcast/position", msgspec.json.encode(fix))


async def asks(talker: Talker, pattern: str, properties: list[tuple[str, str]]) -> None:
    """As ``Talker.subscribe``, of one to whom messages come meanwhile."""
    talker.send(SubscribePacket(9_000, [TopicFilter(pattern, max_qos=QoS.AT_LEAST_ONCE)], user_properties=properties))
    while not isinstance(packet := await talker.next(object), SubAckPacket):
        pass
    assert int(packet.reason_codes[0]) < 0x80, (pattern, packet)


async def refused(server: ServedBroker, person: Talker, login: dict[str, Any]) -> None:
    """What is said no to stands in no record; but why, in the log."""
    person.publish(marked("bad"), b"", [("nc-when", marked("no predicate"))], qos=QoS.AT_LEAST_ONCE, packet_id=9_999)
    person.publish(marked("bad"), b"", [("nc-place", marked("no place"))])
    for name, password in ((marked("nobody"), b"x"), (USER, b"a wrong password")):
        stranger = await Talker.open(server)
        assert int((await stranger.connect(marked("stranger"), username=name, password=password)).reason_code) >= 0x80
    old = await Talker.open(server, version=4)
    old.send(ConnectPacket(marked("old"), clean_start=True, **login))
    await old.next(ConnAckPacket)
    old.publish(marked("bad/old"), b"", qos=QoS.AT_LEAST_ONCE, packet_id=1)
    old.publish("$nearcast/position", marked("no position").encode(), qos=QoS.AT_LEAST_ONCE, packet_id=2)
    await old.closed()


async def told(
    talker: Talker, topic: str, payload: bytes, properties: list[tuple[str, str]] | None = None, **parts: Any
) -> None:
    """Publish with quality 1, until it is acknowledged; what comes meanwhile is not."""
    number = talker.number = getattr(talker, "number", 1_000) + 1  # type: ignore[attr-defined]
    talker.publish(topic, payload, properties, qos=QoS.AT_LEAST_ONCE, packet_id=number, **parts)
    while not isinstance(packet := await talker.next(object), PubAckPacket):
        pass
    assert int(packet.reason_code) < 0x80, (topic, packet)


def post(server: ServedBroker, user: str) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "x", "type": marked("posted"), "data": marked("posted payload")}
    asked(server, "/events", user, json.dumps(event), "application/cloudevents+json")


def asked(
    server: ServedBroker, path: str, user: str = "bob", body: str | None = None, kind: str = "application/json"
) -> str:
    """What the broker answers by HTTP."""
    headers = {"Authorization": "Basic " + b64encode(f"{user}:{PASSWORD}".encode()).decode(), "X-Nearcast": "1"}
    request = urllib.request.Request(  # noqa: S310 - of the broker above
        server.http + path,
        None if body is None else body.encode(),
        headers if body is None else {"Content-Type": kind, **headers},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - of the broker above
        return str(answer.read().decode())
