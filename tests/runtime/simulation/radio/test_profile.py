"""What follows from a profile, against hand calculation."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.runtime.simulation.radio.profile import OFDM_RATES, Ranges, bluetooth_le, wifi_b, wifi_g


def test_a_broadcast_of_128_bytes_takes_192_bytes_at_one_megabit_after_the_long_preamble() -> None:
    assert wifi_b().frame_bytes(128) == 128 + 28 + 8 + 24 + 4
    assert wifi_b().broadcast_ns(128) == 192_000 + 192 * 8 * 1_000


def test_eleven_megabits_are_rounded_up_to_a_microsecond() -> None:
    assert wifi_b().unicast_ns(128) == 192_000 + math.ceil(192 * 8 / 11) * 1_000


@pytest.mark.parametrize("rate", OFDM_RATES)
def test_ofdm_frames_take_whole_symbols(rate: int) -> None:
    symbols = math.ceil((16 + 192 * 8 + 6) / (rate * 4e-6))
    assert wifi_g(data_rate=rate).unicast_ns(128) == 20_000 + symbols * 4_000 + 6_000


def test_requests_go_at_the_basic_rate_and_acknowledgements_as_fast_as_everybody_understands() -> None:
    assert (wifi_b().rts_ns, wifi_b().cts_ns) == (352_000, 304_000)
    assert wifi_b().ack_ns == 192_000 + math.ceil(14 * 8 / 11) * 1_000
    assert (wifi_g().rts_ns, wifi_g().cts_ns) == (20_000 + 8 * 4_000 + 6_000, 20_000 + 6 * 4_000 + 6_000)
    assert wifi_g().ack_rate == 24_000_000
    assert [wifi_g(data_rate=rate).ack_rate for rate in (6_000_000, 9_000_000, 18_000_000)] == [
        6_000_000,
        6_000_000,
        12_000_000,
    ]


def test_an_802_11g_radio_may_broadcast_as_802_11b_does() -> None:
    mixed = wifi_g(broadcast_rate=1_000_000)
    assert mixed.broadcast_ns(128) == wifi_b().broadcast_ns(128)
    assert (mixed.unicast_ns(128), mixed.rts_ns, mixed.ack_ns) == (
        wifi_g().unicast_ns(128),
        wifi_g().rts_ns,
        wifi_g().ack_ns,
    )
    assert wifi_g(broadcast_rate=24_000_000).broadcast_ns(128) == wifi_g(data_rate=24_000_000).unicast_ns(128)
    with pytest.raises(InvalidInput, match="broadcast_rate 6000000 is no rate of DSSS"):
        wifi_b(broadcast_rate=6_000_000)


def test_interframe_spaces() -> None:
    assert wifi_b().difs_ns == 50_000
    assert wifi_g().difs_ns == 28_000
    assert wifi_b().eifs_ns == 10_000 + 304_000 + 50_000


def test_the_default_ranges_are_14_decibels_apart() -> None:
    profile = wifi_b()
    margin = profile.reception_threshold_dbm - profile.interference_threshold_dbm
    assert profile.reception_threshold_dbm == -82.0
    assert margin == pytest.approx(38 * math.log10(205 / 88))
    assert profile.reception_range == pytest.approx(88)
    assert profile.interference_range == profile.carrier_sense_range == pytest.approx(205)


def test_noise_is_that_of_the_bandwidth_and_seven_decibels() -> None:
    assert wifi_b().noise_dbm == pytest.approx(-174 + 10 * math.log10(22e6) + 7, abs=0.05)
    assert wifi_b().noise_dbm - wifi_g().noise_dbm == pytest.approx(10 * math.log10(1.1))


@given(st.floats(1, 10_000), st.floats(1.5, 6))
def test_range_is_the_inverse_of_power(distance: float, exponent: float) -> None:
    profile = wifi_b(Ranges(path_loss_exponent=exponent))
    assert profile.range_of(profile.power_at(distance)) == pytest.approx(distance)


@given(st.floats(1, 500), st.floats(1, 10), st.floats(0, 1))
def test_thresholds_lie_at_their_ranges(reception: float, factor: float, share: float) -> None:
    sense = reception + share * (factor - 1) * reception
    ranges = Ranges(reception=reception, interference=factor * reception, carrier_sense=sense)
    profile = wifi_g(ranges)
    assert profile.reception_range == pytest.approx(reception)
    assert profile.interference_range == pytest.approx(factor * reception)
    assert profile.carrier_sense_range == pytest.approx(sense)


@pytest.mark.parametrize(
    "changes",
    [
        {"basic_rate": 6_000_000},
        {"data_rate": 0},
        {"cw_min": 0},
        {"cw_min": 63, "cw_max": 31},
        {"slot_ns": 0},
        {"queue_frames": -1},
        {"reception_threshold_dbm": -120.0},
        {"carrier_sense_threshold_dbm": -70.0},
    ],
)
def test_profiles_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        wifi_b(**changes)


@pytest.mark.parametrize("distance", [0.5, -1.0, math.inf, math.nan])
def test_ranges_that_cannot_be_are_refused(distance: float) -> None:
    with pytest.raises(InvalidInput, match="range"):
        Ranges(interference=distance)


@given(st.floats(-20.0, 20.0), st.floats(-110.0, -85.0), st.floats(2.0, 5.0))
def test_the_range_of_bluetooth_is_where_the_link_budget_is_used_up(
    power: float, sensitivity: float, exponent: float
) -> None:
    profile = bluetooth_le(tx_power_dbm=power, sensitivity_dbm=sensitivity, path_loss_exponent=exponent)
    budget = power - sensitivity - 46.6777
    assert profile.reception_range == pytest.approx(max(1.0, 10 ** (budget / (10 * exponent))))
    assert profile.interference_range == pytest.approx(max(1.0, 10 ** ((budget + 8.0) / (10 * exponent))))


def test_bluetooth_reaches_thirty_metres_in_the_street_and_hears_well_above_its_noise() -> None:
    profile = bluetooth_le()
    assert profile.reception_range == pytest.approx(30.35, abs=0.01)
    assert profile.interference_range == pytest.approx(49.3, abs=0.1)
    assert profile.reception_threshold_dbm - profile.noise_dbm > profile.preamble_sinr_db


def test_an_advertisement_of_128_bytes_takes_three_pointers_a_pause_and_151_bytes_at_one_megabit() -> None:
    assert bluetooth_le().frame_bytes(128) == 128 + 4 + 16 + 3
    assert bluetooth_le().broadcast_ns(128) == 3 * 17 * 8_000 + 300_000 + 8_000 + 151 * 8_000
