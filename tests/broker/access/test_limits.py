"""Rates and quotas, in virtual time: what is free after a rest, and how it goes on from there, in closed form."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.access.limits import FILTERED, UNDERSTOOD, Admission, ClientLimits, Quotas, work_of
from nearcast.broker.access.principal import Peer
from nearcast.broker.settings import LimitSettings
from nearcast.errors import QuotaExceeded
from nearcast.runtime.buckets import Bucket
from nearcast.settings_files import Duration, Size

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
REMOTE = "203.0.113.7"

rates = st.sampled_from((0.5, 1.0, 4.0, 10.0, 250.0))
bursts = st.sampled_from((1, SECOND // 2, SECOND, 5 * SECOND))


@given(rates, bursts)
def test_after_a_rest_a_burst_is_free_and_then_the_rate_holds(rate: float, burst: int) -> None:
    bucket = Bucket(rate, burst)
    size = max(1, math.floor(rate * burst / SECOND))
    assert [bucket.take(NOW) for _ in range(size + 3)] == [True] * size + [False] * 3
    # The remainder of a unit that is there already makes the first one come earlier.
    interval = SECOND / rate
    missing = max(0.0, (size + 1) * interval - max(burst, interval))
    assert not bucket.take(NOW + math.ceil(missing) - 1)
    assert bucket.take(NOW + math.ceil(missing))


@given(rates, bursts, st.integers(1, 200))
def test_the_pause_after_n_units_is_their_time_less_the_burst(rate: float, burst: int, count: int) -> None:
    bucket = Bucket(rate, burst)
    pauses = [bucket.spend(NOW) for _ in range(count)]
    interval = SECOND / rate
    assert pauses == [max(0, math.ceil(n * interval - max(burst, interval))) for n in range(1, count + 1)]


@given(rates, bursts, st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 20)), max_size=50))
def test_nobody_gets_more_than_the_burst_and_the_rate(rate: float, burst: int, asked: list[tuple[int, int]]) -> None:
    bucket, now, given_units = Bucket(rate, burst), NOW, 0
    capacity = max(rate * burst / SECOND, 1.0)
    for wait, amount in asked:
        now += wait
        if bucket.take(now, amount):
            # What is larger than the burst is owed afterwards, so the last one may exceed it.
            assert given_units + min(amount, capacity) <= capacity + rate * (now - NOW) / SECOND + 1e-6
            given_units += amount


@given(rates, bursts, st.integers(1, 100))
def test_who_obeys_the_pauses_goes_at_the_rate(rate: float, burst: int, count: int) -> None:
    bucket, now = Bucket(rate, burst), NOW
    for _ in range(count):
        now += bucket.spend(now)
    expected = max(0.0, count / rate - max(burst / SECOND, 1 / rate))
    assert (now - NOW) / SECOND == pytest.approx(expected, abs=1e-6 * count + 1e-9)


def test_more_than_fits_in_is_given_to_whoever_has_rested_and_owed_afterwards() -> None:
    bucket = Bucket(10.0, SECOND)
    assert bucket.take(NOW, 50)
    assert not bucket.take(NOW + 4 * SECOND)
    assert bucket.is_full(NOW + 5 * SECOND)


def test_publishing_too_fast_is_answered_by_reading_more_slowly() -> None:
    limits = LimitSettings(publishes_per_second=10.0, bytes_per_second=Size(1_000), burst=Duration(SECOND))
    client = ClientLimits(limits)
    assert [client.published(10, NOW) for _ in range(11)] == [0] * 10 + [SECOND // 10]
    assert client.published(1_100, NOW + SECOND) == SECOND // 10, "1,100 bytes take 1.1 s, and a second is free"
    assert client.statistics().slowed == 2


def test_subscribing_and_moving_too_fast_is_refused() -> None:
    client = ClientLimits(LimitSettings(positions_per_second=1.0, subscribes_per_second=2.0, burst=Duration(SECOND)))
    client.check_position(NOW)
    client.check_subscribe(NOW)
    client.check_subscribe(NOW)
    for check in (client.check_position, client.check_subscribe):
        with pytest.raises(QuotaExceeded, match="too fast") as refusal:
            check(NOW)
        assert refusal.value.reason == 0x97
        check(NOW + SECOND)
    assert client.statistics().refused == 2


def test_what_has_to_be_understood_costs_more_than_what_is_passed_on() -> None:
    assert work_of([("name", "value")]) == 9 * UNDERSTOOD
    assert work_of([("nc-to", "a = 1")]) == 5 * UNDERSTOOD + 5 * FILTERED
    limits = ClientLimits(LimitSettings(subscribes_per_second=10.0, burst=Duration.of("1s")))
    dear = work_of([("nc-where", "a" * 512)])
    limits.check_subscribe(NOW, 2, dear)  # as ten
    with pytest.raises(QuotaExceeded):
        limits.check_subscribe(NOW)
    limits.check_subscribe(NOW + SECOND, 8, work_of([("nc-name", "x")]))


def test_user_properties_of_a_packet_are_bounded_together() -> None:
    quotas = Quotas(LimitSettings(properties=Size(100)))
    quotas.check_properties([("a", "b" * 49), ("c", "d" * 49)])
    with pytest.raises(QuotaExceeded, match="at most 100 B of user properties"):
        quotas.check_properties([("a", "b" * 49), ("c", "d" * 50)])


def test_a_rate_of_zero_is_unlimited() -> None:
    none = LimitSettings(
        publishes_per_second=0, bytes_per_second=Size(0), positions_per_second=0, subscribes_per_second=0
    )
    client = ClientLimits(none)
    assert sum(client.published(10**6, NOW) for _ in range(10_000)) == 0
    for _ in range(10_000):
        client.check_position(NOW)


def test_clients_of_this_machine_have_no_rates_unless_asked_for() -> None:
    here, there = Peer("127.0.0.1"), Peer(REMOTE)
    open_to_us, strict = Quotas(LimitSettings()), Quotas(LimitSettings(loopback=True))
    assert open_to_us.of_client(here) is open_to_us.of_client(Peer("::1")), "they share one object"
    assert open_to_us.of_client(there) is not open_to_us.of_client(there)
    assert strict.of_client(here) is not strict.of_client(here)


def test_topics_are_bounded_in_levels_and_in_bytes() -> None:
    quotas = Quotas(LimitSettings(topic_levels=3, topic_bytes=10))
    quotas.check_topic("a/b/c")
    quotas.check_topic("ää/ää/")
    for topic in ("a/b/c/d", "12345678901", "ääääää"):
        with pytest.raises(QuotaExceeded, match="at most") as refusal:
            quotas.check_topic(topic)
        assert refusal.value.reason == 0x90


def test_the_last_one_that_is_allowed_is_allowed() -> None:
    quotas = Quotas(
        LimitSettings(
            subscriptions_per_client=3, contexts_per_client=3, sessions=3, retained_messages=3, retained_bytes=Size(100)
        )
    )
    for check in (quotas.check_contexts, quotas.check_sessions):
        check(2)
        with pytest.raises(QuotaExceeded, match="at most 3"):
            check(3)
    quotas.check_retained(2, 100)
    with pytest.raises(QuotaExceeded, match="at most 3 messages"):
        quotas.check_retained(3, 0)
    with pytest.raises(QuotaExceeded, match="at most 100 B"):
        quotas.check_retained(0, 101)


def test_connections_are_counted_overall_and_by_address() -> None:
    admission = Admission(LimitSettings(connections=3, connections_per_address=2))
    admission.opened(REMOTE, NOW)
    admission.opened(REMOTE, NOW)
    with pytest.raises(QuotaExceeded, match="at most 2 connections from one address"):
        admission.opened(REMOTE, NOW)
    admission.opened("198.51.100.1", NOW)
    with pytest.raises(QuotaExceeded, match="at most 3 connections"):
        admission.opened("198.51.100.2", NOW)
    admission.closed(REMOTE)
    admission.opened(REMOTE, NOW)
    assert admission.statistics().connections == 3
    assert admission.statistics().refused == 2


def test_connections_that_come_too_fast_are_refused_without_harm_to_other_addresses() -> None:
    limits = LimitSettings(connects_per_second=10, connects_per_second_per_address=2, burst=Duration(SECOND))
    admission = Admission(limits)
    admission.opened(REMOTE, NOW)
    admission.opened(REMOTE, NOW)
    for _ in range(100):
        with pytest.raises(QuotaExceeded, match="too fast") as refusal:
            admission.opened(REMOTE, NOW)
        assert refusal.value.reason == 0x9F
    for number in range(8):
        admission.opened(f"198.51.100.{number}", NOW)
    with pytest.raises(QuotaExceeded, match="too fast"):
        admission.opened("198.51.100.9", NOW)
    admission.opened(REMOTE, NOW + SECOND // 2)


def test_an_ipv6_network_counts_as_one_address() -> None:
    admission = Admission(LimitSettings(connections_per_address=2))
    admission.opened("2001:db8::1", NOW)
    admission.opened("2001:db8::2:1", NOW)
    with pytest.raises(QuotaExceeded, match="one address"):
        admission.opened("2001:db8::3", NOW)
    admission.opened("2001:db8:0:1::3", NOW)


def test_a_mapped_address_is_the_address_that_it_maps() -> None:
    admission = Admission(LimitSettings(connections_per_address=1))
    admission.opened(REMOTE, NOW)
    with pytest.raises(QuotaExceeded, match="one address"):
        admission.opened(f"::ffff:{REMOTE}", NOW)
    for _ in range(10):
        admission.opened("::ffff:127.0.0.1", NOW)


def test_addresses_are_forgotten_once_nothing_is_left_of_them() -> None:
    admission = Admission(LimitSettings(connects_per_second=0, burst=Duration(SECOND)))
    for number in range(5_000):
        address, now = f"10.{number >> 8}.{number & 255}.1", NOW + number * 10_000
        admission.opened(address, now)
        admission.closed(address)
    assert admission.statistics().addresses <= 110, "those of the last second, at 100 a second"
    assert admission.statistics().connections == 0


def test_an_address_with_connections_is_not_forgotten() -> None:
    admission = Admission(LimitSettings(connections_per_address=1))
    admission.opened(REMOTE, NOW)
    for number in range(100):
        admission.opened(f"10.0.0.{number}", NOW + number * 60 * SECOND)
    with pytest.raises(QuotaExceeded, match="one address"):
        admission.opened(REMOTE, NOW + 10_000 * SECOND)
