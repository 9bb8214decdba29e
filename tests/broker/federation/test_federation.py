"""Real brokers, each a process, that act as one: events find people wherever they are, also when a broker falls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.federation.brokers import FederatedBroker, federation, together
from tests.broker.federation.people import person, story
from tests.waiting import until

import nearcast
from nearcast.errors import QuotaExceeded

CAR = "mode = 'car'"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[FederatedBroker]]:
    with federation(tmp_path_factory.mktemp("federation"), 3) as three:
        yield three


async def known_everywhere(brokers: list[FederatedBroker], contexts: int) -> None:
    """Until every broker knows all contexts that are registered anywhere, so many at least."""

    def all_know() -> bool:
        routing = [broker.status()["routing"] for broker in brokers]
        registered = sum(each["local"] for each in routing)
        return registered >= contexts and all(each["knowledge"]["entries"] == registered for each in routing)

    await until(all_know, pause=0.05)


@story
async def test_an_event_reaches_whom_it_is_addressed_to_at_any_broker_and_nobody_else(
    brokers: list[FederatedBroker],
) -> None:
    first, second, third = brokers
    async with (
        person(first.url, "ada", mode="car", lat=52.5, lon=13.4) as ada,
        person(second.url, "bob", mode="car", lat=48.1, lon=11.6) as bob,
        person(third.url, "eve", mode="bike", lat=52.5, lon=13.4) as eve,
        nearcast.connect(third.url, client_id="sender") as sender,
    ):
        await known_everywhere(brokers, 3)
        await sender.publish("news", "all cars", to=CAR)
        await sender.publish("news", "here", to="S_INTERSECTS(position, BBOX(13, 52, 14, 53))")
        await sender.publish("news", "bikes", to="mode = 'bike'")
        await ada.until_got("all cars", "here")
        await bob.until_got("all cars")
        await eve.until_got("here", "bikes")
        await sender.publish("news", "the end", to=f"{CAR} OR mode = 'bike'")
        for each in (ada, bob, eve):
            await each.until_got("the end")
        assert set(ada.got) == {"all cars", "here", "the end"}
        assert set(bob.got) == {"all cars", "the end"}
        assert set(eve.got) == {"here", "bikes", "the end"}


@pytest.mark.parametrize("qos", [0, 1, 2])
@story
async def test_ordinary_events_go_where_they_are_subscribed_to(brokers: list[FederatedBroker], qos: int) -> None:
    first, second, third = brokers
    topic = f"ordinary/{qos}"
    async with (
        person(first.url, f"reader-{qos}", f"{topic}/#") as reader,
        person(second.url, f"other-{qos}", "else/#") as other,
        nearcast.connect(third.url, client_id=f"writer-{qos}") as writer,
    ):
        await until(lambda: wanted_elsewhere(third) >= {f"{topic}/#", "else/#"}, pause=0.05)
        await writer.publish(f"{topic}/a", "plain", qos=qos)
        await writer.publish(f"{topic}/b", "with a place", place=(52.0, 13.0), qos=qos)
        await reader.until_got("plain", "with a place")
        assert not other.got


def wanted_elsewhere(broker: FederatedBroker) -> set[str]:
    return {topic for topics in broker.status()["topics"].values() for topic in topics}


@story
async def test_a_client_takes_its_session_along_and_what_waits_there_follows(brokers: list[FederatedBroker]) -> None:
    first, second, third = brokers
    async with nearcast.connect(third.url, client_id="roaming-sender") as sender:
        async with person(first.url, "nomad", "to/nomad", wanders=True):
            pass
        # It is away; its session is with the first broker, and gets what is for it.
        await known_everywhere(brokers, 1)
        await sender.publish("news", "while away", to="wanders = true")
        await sender.publish("to/nomad", "subscribed, while away")
        await until(lambda: first.status()["custody"]["parcels"] == 0 and third.status()["custody"]["parcels"] == 0)
        async with person(second.url, "nomad") as nomad:  # it says nothing of itself: its session does
            assert second.status()["roaming"]["handed_over"] >= 1
            await nomad.until_got("while away")
            await sender.publish("news", "at its new home", to="wanders = true")
            await nomad.until_got("at its new home")
            await nomad.client.go_to(first.url)
            await sender.publish("news", "back again", to="wanders = true")
            await nomad.until_got("back again")
            await nomad.client.go_to(third.url)
            await sender.publish("news", "and on", to="wanders = true")
            await nomad.until_got("while away", "at its new home", "back again", "and on")


@story
async def test_what_a_dead_broker_is_owed_waits_for_it_and_its_clients_get_it_once(
    brokers: list[FederatedBroker],
) -> None:
    first, second, third = brokers
    async with (
        nearcast.connect(first.url, client_id="patient-sender") as sender,
        person(second.url, "stayer", stays=True) as stayer,
        person(second.url, "leaver", others=(third.url,), stays=True) as leaver,
    ):
        await known_everywhere(brokers, 2)
        await sender.publish("news", "before", to="stays = true")
        await stayer.until_got("before")
        await leaver.until_got("before")
        await asyncio.to_thread(second.kill)
        await sender.publish("news", "meanwhile", to="stays = true")
        # Whoever finds another broker need not wait for the old one.
        await leaver.until_got("before", "meanwhile")
        assert stayer.got == {"before": 1}
        await asyncio.to_thread(second.start)
        await stayer.until_got("before", "meanwhile")
        await asyncio.to_thread(together, brokers)
        await sender.publish("news", "after", to="stays = true")
        await stayer.until_got("before", "meanwhile", "after")
        await leaver.until_got("before", "meanwhile", "after")
        await until(lambda: all(broker.status()["custody"]["parcels"] == 0 for broker in brokers), pause=0.1)
        for each in (stayer, leaver):
            assert dict(each.got) == {"before": 1, "meanwhile": 1, "after": 1}


@story
async def test_an_event_that_is_sent_again_to_another_broker_is_not_doubled(brokers: list[FederatedBroker]) -> None:
    first, second, third = brokers
    async with (
        person(first.url, "careful", careful=True) as one,
        person(third.url, "careful-too", careful=True) as two,
        nearcast.connect(second.url, client_id="twice") as sender,
    ):
        await known_everywhere(brokers, 2)
        name = await sender.publish("news", "once", to="careful = true")
        await one.until_got("once")
        await sender.go_to(third.url)
        await sender.publish("news", "once", to="careful = true", id=name)
        await sender.publish("news", "twice", to="careful = true")
        for each in (one, two):
            await each.until_got("once", "twice")


def test_a_broker_with_another_secret_does_not_start_and_says_why(
    tmp_path: Path, brokers: list[FederatedBroker]
) -> None:
    newcomer = FederatedBroker(tmp_path / "new", "new", 0, [brokers[0].federation_port])
    (tmp_path / "new" / "secret").write_text("quite another secret than theirs")
    with pytest.raises(AssertionError, match=r"cannot join the federation: .*it knows another secret"):
        newcomer.start()


@pytest.mark.slow
@story
async def test_with_replicas_what_was_acknowledged_outlives_a_broker_that_never_returns(tmp_path: Path) -> None:
    with federation(tmp_path, 2, "replicate = true") as (first, second):
        async with nearcast.connect(first.url, client_id="replicating") as sender:
            async with person(first.url, "patient", waits=True):
                pass
            await sender.publish("news", "kept twice", to="waits = true")
            assert second.status()["replicas"]["kept"] == 1
        await asyncio.to_thread(first.kill)
        async with person(second.url, "patient", waits=True) as patient:
            await patient.until_got("kept twice")
        await until(lambda: second.status()["brokers"] == {"b0": False}, pause=0.1)
        async with nearcast.connect(second.url, client_id="alone") as sender:
            with pytest.raises(QuotaExceeded, match="replica"):
                await sender.publish("news", "kept once only", to="waits = true")
