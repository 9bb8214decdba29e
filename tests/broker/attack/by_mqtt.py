"""Log-ins with what is wrong, foreign or expired, and escalations of somebody who is let in and may do little."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from typing import Any, Final

from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    Packet,
    PubAckPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    Will,
)
from tests.broker.attack.attacking import KNOWN, PATIENCE, STRANGERS, Attack, Outcome, Target

from nearcast.mqtt.stream import PacketReader

MALLORY: Final[dict[str, Any]] = {"username": "mallory", "password": b"mallory"}
FAR: Final = '{"circle": 100, "at": [9.9, 49.87]}'
NEAR: Final = '{"circle": 100, "at": [8.65, 49.87]}'

SUBSCRIPTIONS: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("#", {}),
    ("+/x", {}),
    ("honest/#", {}),
    ("$share/g/honest/x", {}),
    ("$SYS/#", {}),
    ("honest/x", {"nc-area": NEAR, "nc-since": "-2h"}),
    ("$nearcast/presence/+/+", {"nc-area": NEAR}),
    ("$nearcast/presence/enter/honest-publisher", {"nc-area": NEAR}),
)
PUBLISHES: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("honest/x", {}),
    ("$near/place=49.87,8.65/honest/x", {}),
    ("evil/x", {}),
    ("evil/x", {"nc-reach": FAR}),
    ("evil/x", {"nc-place": "49.87,8.65", "nc-to": "kind = 'car'"}),
    ("evil/x", {"nc-place": "49.87,8.65", "nc-when": "overlaps(time, '-10m', 'now')"}),
)
TO_NOBODY: Final = ("$SYS/x", "$nearcast/problems")
"""Topics on which even root does not speak."""


async def first_answer(reader: asyncio.StreamReader, kind: type[Packet]) -> Any:
    """The first packet of that kind; none if the broker hangs up."""
    packets = PacketReader(version=5)
    while True:
        try:
            data = await asyncio.wait_for(reader.read(65_536), PATIENCE)
        except (ConnectionError, ssl.SSLError):
            return None
        if not data:
            return None
        for each in packets.packets(data):
            if isinstance(each, kind):
                return each


def judged(code: int | None) -> Outcome:
    return Outcome(False, "hung up") if code is None else Outcome(code < 0x80, f"0x{code:02x}")


async def log_in(
    target: Target,
    *,
    port: str = "mqtt",
    addresses: tuple[str, ...] = STRANGERS,
    context: ssl.SSLContext | None = None,
    client: str | None = None,
    **parts: Any,
) -> Outcome:
    try:
        reader, writer = await target.connection(port, addresses, context)
    except ssl.SSLError as error:
        return Outcome(False, f"TLS: {error.reason}")
    try:
        writer.write(ConnectPacket(client or f"evil-{target.turn}", clean_start=True, **parts).write())
        answer = await first_answer(reader, ConnAckPacket)
        return judged(None if answer is None else int(answer.reason_code))
    finally:
        writer.transport.abort()


async def asked(target: Target, packet: Packet, kind: type[Packet], who: dict[str, Any]) -> Outcome:
    """By somebody who is let in."""
    reader, writer = await target.connection("mqtt", KNOWN)
    try:
        writer.write(ConnectPacket(f"evil-{target.turn}", clean_start=True, **who).write())
        answer = await first_answer(reader, ConnAckPacket)
        if answer is None or int(answer.reason_code) >= 0x80:
            raise ConnectionError("somebody with the right password was not let in")
        writer.write(packet.write())
        answer = await first_answer(reader, kind)
        codes = [None] if answer is None else getattr(answer, "reason_codes", None) or [answer.reason_code]
        return judged(None if codes[0] is None else int(codes[0]))
    finally:
        writer.transport.abort()


def subscription(topic: str, properties: dict[str, str], who: dict[str, Any]) -> partial[Any]:
    packet = SubscribePacket(1, [TopicFilter(topic)], user_properties=list(properties.items()))
    return partial(asked, packet=packet, kind=SubAckPacket, who=who)


def publish(topic: str, properties: dict[str, str], who: dict[str, Any], *, retain: bool = False) -> partial[Any]:
    packet = PublishPacket(
        topic,
        b"evil",
        qos=QoS.AT_LEAST_ONCE,
        packet_id=1,
        user_properties=list(properties.items()),
        retain=retain,
    )
    return partial(asked, packet=packet, kind=PubAckPacket, who=who)


def papers(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def attacks(target: Target) -> list[Attack]:
    found = [
        Attack("log in: wrong password", partial(log_in, username="root", password=b"guess"), "0x86"),
        Attack("log in: other words", partial(log_in, username="root", password=b"root'; --"), "0x86"),
        Attack("log in: nobody", log_in),
    ]
    found += [
        Attack(f"log in: {kind}", partial(log_in, password=token.encode()), "0x86")
        for kind, token in target.tokens.items()
    ]
    over_tls = partial(log_in, port="mqtts")
    found += [
        Attack("certificate: foreign", partial(over_tls, context=papers(*target.papers["foreign"]))),
        Attack("certificate: none", partial(over_tls, context=papers("", ""))),
        Attack(
            "certificate: of somebody else",
            partial(over_tls, context=papers(*target.papers["mallory"]), username="root"),
        ),
        Attack(
            "certificate: of somebody else, with a guess",
            partial(over_tls, context=papers(*target.papers["mallory"]), username="root", password=b"guess"),
        ),
    ]
    for client in ("honest-publisher", "honest-listener"):
        take = partial(log_in, addresses=KNOWN, client=client, **MALLORY)
        found.append(Attack(f"take over {client}", take, "0x85"))
    will = partial(log_in, addresses=KNOWN, will=Will(topic="honest/x", payload=b"evil"), **MALLORY)
    found.append(Attack("will", will, "0x87"))
    found += [Attack(f"subscribe {name} {asked}", subscription(name, asked, MALLORY)) for name, asked in SUBSCRIPTIONS]
    for retain in (False, True):
        found += [
            Attack(f"publish {name} {asked}", publish(name, asked, MALLORY, retain=retain)) for name, asked in PUBLISHES
        ]
        found += [Attack(f"publish {name}", publish(name, {}, MALLORY, retain=retain)) for name in TO_NOBODY]
    return found


def controls(target: Target, password: str, token: str, own: tuple[str, str]) -> list[Attack]:
    """The same, by whoever may: what is refused above is refused because of who asks."""
    root: dict[str, Any] = {"username": "root", "password": password.encode()}
    return [
        Attack("log in: right password", partial(log_in, addresses=KNOWN, **root)),
        Attack("log in: token", partial(log_in, addresses=KNOWN, password=token.encode())),
        Attack("certificate: right", partial(log_in, port="mqtts", addresses=KNOWN, context=papers(*own))),
        Attack("will", partial(log_in, addresses=KNOWN, will=Will(topic="honest/x", payload=b"last"), **root)),
        *(Attack(f"subscribe {name}", subscription(name, asked, root)) for name, asked in SUBSCRIPTIONS),
        *(Attack(f"publish {name} {asked}", publish(name, asked, root)) for name, asked in PUBLISHES),
    ]
