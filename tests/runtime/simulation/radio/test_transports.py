"""How far each radio really reaches, and what it costs its host."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.runtime.energy import BLUETOOTH_LE_ENERGY, WIFI_ENERGY, EnergyProfile
from nearcast.runtime.host import Component, Host
from nearcast.runtime.links import SENT, Traffic
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Endpoint
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import RadioProfile, bluetooth_le, wifi_b, wifi_g
from nearcast.runtime.simulation.world import World

PROFILES = pytest.mark.parametrize("made", [wifi_b, wifi_g, bluetooth_le])
SECOND = 1_000_000


class Word(Message, frozen=True, tag="word"):
    text: str


class Talker(Component):
    def start(self, host: Host) -> None:
        self.heard: list[str] = []
        self.endpoint: Endpoint = host.link("local").open(9, self._heard, Word)

    def _heard(self, _sender: str, word: Word) -> None:
        self.heard.append(word.text)


class Street:
    def __init__(self, profile: RadioProfile, *places: float) -> None:
        self.simulation = Simulation(1)
        self.world = World(self.simulation, Plane(Point(49.87, 8.65)), len(places))
        self.radio = RadioNetwork(self.simulation, profile, self.world.motion, interface="local")
        for node, place in enumerate(places):
            self.world.motion.put(node, place, 0.0)
            self.world.add(f"h{node}", lambda: [Talker()], [self.radio]).join()

    def talker(self, node: int) -> Talker:
        host = self.world.hosts[f"h{node}"].host
        assert host is not None
        return host.component(Talker)

    def until(self, seconds: float) -> None:
        self.simulation.run(self.simulation.start + round(seconds * SECOND))


@PROFILES
def test_a_message_is_heard_up_to_the_distance_of_the_closed_form_and_not_beyond(
    made: Callable[[], RadioProfile],
) -> None:
    profile = made()
    # Power at the end of the range, by the log-distance law, is the least that can be received.
    reach = 10 ** ((profile.tx_power_dbm - profile.reception_threshold_dbm - 46.6777) / 38.0)
    street = Street(profile, 0.0, 0.5 * reach, 0.999 * reach, 1.001 * reach)
    for number in range(20):
        street.talker(0).endpoint.broadcast(Word(str(number)))
        street.until(0.1 * (number + 1))
    said = [str(number) for number in range(20)]
    assert [street.talker(node).heard for node in (1, 2, 3)] == [said, said, []]


@PROFILES
def test_energy_is_that_of_every_message_and_byte_in_the_books_and_of_the_time_of_listening(
    made: Callable[[], RadioProfile],
) -> None:
    profile, random = made(), Random(1)
    street = Street(profile, 0.0, 5.0, 10.0)
    for step in range(30):
        street.talker(random.randrange(3)).endpoint.broadcast(Word("x" * random.randrange(100)))
        street.until(0.05 * (step + 1))
    street.world.hosts["h2"].fail()
    street.until(10.0)
    costs, books = profile.energy, list(street.radio.traffic())
    found = {link.host: spent for link, spent in street.radio.spent()}
    assert sum(row.messages for row in books if row.direction == SENT) == 30
    for host, spent in found.items():
        sent, received = (
            [row for row in books if row.host == host and (row.direction == SENT) == out] for out in (True, False)
        )
        by_hand = [
            sum(row.messages for row in rows) * per_message + sum(row.bytes for row in rows) * per_byte
            for rows, per_message, per_byte in (
                (sent, costs.sent_message_joules, costs.sent_byte_joules),
                (received, costs.received_message_joules, costs.received_byte_joules),
            )
        ]
        up = 1.5 if host == "h2" else 10.0
        assert [spent.sent, spent.received] == pytest.approx(by_hand)
        assert spent.listening == pytest.approx(up * costs.listening_watts)
        assert spent.joules == pytest.approx(sum(by_hand) + up * costs.listening_watts)
    assert all(spent.sent > 0 and spent.received > 0 for spent in found.values())


def test_what_is_known_of_the_two_cards_is_kept() -> None:
    """A broadcast of 1000 bytes: Feeney and Nilsson's lines; Bluetooth needs a tenth to listen and less to send."""
    sent, received = Traffic("wifi", "sent", "x", "h", 1, 1_000), Traffic("wifi", "received", "x", "h", 1, 1_000)
    spent = WIFI_ENERGY.spent([sent, received], SECOND)
    assert [spent.sent, spent.received, spent.listening] == pytest.approx([2_166e-6, 556e-6, 0.843])
    other = BLUETOOTH_LE_ENERGY.spent([sent, received], SECOND)
    assert other.sent < spent.sent / 4
    assert other.listening == pytest.approx(0.0525)


def test_energy_is_neither_negative_nor_without_end() -> None:
    with pytest.raises(InvalidInput, match="listening_watts is -1"):
        EnergyProfile(
            listening_watts=-1.0,
            sent_message_joules=0.0,
            sent_byte_joules=0.0,
            received_message_joules=0.0,
            received_byte_joules=0.0,
        )
