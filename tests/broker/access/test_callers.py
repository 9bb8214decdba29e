"""What those who ask by HTTP may cost, in virtual time."""

import pytest

from nearcast.broker.access.callers import MOST_CALLERS, Callers
from nearcast.broker.settings import LimitSettings
from nearcast.errors import QuotaExceeded
from nearcast.settings_files import Duration, Size

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
REMOTE = "203.0.113.7"
STRICT = LimitSettings(
    requests_per_second=2.0, publishes_per_second=10.0, bytes_per_second=Size(1_000), burst=Duration(SECOND)
)


def refused(callers: Callers, user: str | None, address: str, now: int = NOW) -> int:
    """For how long (microseconds)."""
    with pytest.raises(QuotaExceeded, match="too fast") as refusal:
        callers.check_request(user, address, now)
    return refusal.value.wait


def test_strangers_of_an_address_share_its_rate_and_whoever_is_known_has_a_rate_of_its_own() -> None:
    callers = Callers(STRICT)
    for _ in range(2):
        callers.check_request(None, REMOTE, NOW)
    assert refused(callers, None, REMOTE) == SECOND // 2
    for user in ("ada", "bob", REMOTE):
        for _ in range(2):
            callers.check_request(user, REMOTE, NOW)
        assert refused(callers, user, "198.51.100.1") == SECOND // 2, "wherever it asks from"
    callers.check_request(None, "198.51.100.1", NOW)
    assert callers.statistics().refused == 4
    callers.check_request(None, REMOTE, NOW + SECOND // 2)
    assert refused(callers, None, REMOTE, NOW + SECOND // 2) == SECOND // 2


def test_an_ipv6_network_is_one_address() -> None:
    callers = Callers(STRICT)
    callers.check_request(None, "2001:db8::1", NOW)
    callers.check_request(None, "2001:db8::2", NOW)
    refused(callers, None, "2001:db8::3")


def test_this_machine_is_exempt_unless_asked_for() -> None:
    callers = Callers(STRICT)
    for _ in range(1_000):
        callers.check_request(None, "127.0.0.1", NOW)
        callers.check_publish("ada", "::1", 100, 10_000, NOW)
    callers.change(LimitSettings(requests_per_second=1.0, burst=Duration(SECOND), loopback=True))
    callers.check_request(None, "127.0.0.1", NOW)
    refused(callers, None, "127.0.0.1")


def test_a_rate_of_zero_is_unlimited() -> None:
    callers = Callers(LimitSettings(requests_per_second=0, publishes_per_second=0, bytes_per_second=Size(0)))
    for _ in range(1_000):
        callers.check_request(None, REMOTE, NOW)
        callers.check_publish(None, REMOTE, 1_000, 10**9, NOW)


@pytest.mark.parametrize(("messages", "size"), [(11, 11), (1, 1_100)])
def test_what_is_published_is_limited_in_number_and_in_bytes(messages: int, size: int) -> None:
    """More than fits in is taken from whoever has rested, and owed afterwards, as of MQTT clients; and what is refused costs nothing."""
    callers = Callers(STRICT)
    callers.check_publish("ada", REMOTE, messages, size, NOW)
    for _ in range(5):
        with pytest.raises(QuotaExceeded, match="published too fast") as refusal:
            callers.check_publish("ada", REMOTE, 1, 100, NOW)
        assert refusal.value.wait == SECOND // 5
    callers.check_publish("bob", REMOTE, 10, 1_000, NOW)
    callers.check_publish("ada", REMOTE, 1, 100, NOW + SECOND // 5)


def test_no_more_callers_are_remembered_than_there_is_room_for() -> None:
    callers = Callers(STRICT)
    for number in range(MOST_CALLERS + 500):
        callers.check_request(None, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", NOW)
        if number % 1_000 == 0:
            callers.check_request("ada", REMOTE, NOW + number * SECOND)
    assert callers.statistics().known == MOST_CALLERS
    assert (True, "ada") in callers._known, "it was here all the time"
