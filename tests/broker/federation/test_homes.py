"""Homes of clients on the notice board: what is said of sessions that are over."""

from __future__ import annotations

from pathlib import Path

from tests.broker.federation.lone_broker import lone_broker
from tests.broker.federation.people import story

from nearcast.broker.federation.roaming import Home
from nearcast.broker.federation.wire import RELAY, Claim, Granted, Notice, Notices, Parcel, Stored, encode

THERE = "there@127.0.0.1:9"


@story
async def test_a_session_that_ended_while_its_broker_was_away_has_no_home_for_ever(tmp_path: Path) -> None:
    async with lone_broker(tmp_path) as rig:
        home = Home("here", None, False, (0, ""), "")
        rig.federation.receive(THERE, Notices((Notice("c/gone", 7, "here", encode(home)),)))
        said = rig.federation.board.get("c/gone")
        assert said is not None
        assert (said.version, said.value) == (8, b"")


@story
async def test_a_claim_for_a_client_that_went_on_meanwhile_is_passed_on_once(tmp_path: Path) -> None:
    asker = "third@127.0.0.1:8"
    async with lone_broker(tmp_path) as rig:
        await rig.connect("nomad", session_expiry_interval=10_000)
        await rig.quiet()
        known = rig.federation.board.get("c/nomad")
        assert known is not None
        passed_on = Claim(7, "nomad", None, asker)
        rig.federation.receive(THERE, passed_on)
        (to, granted), rig.said = rig.said[-1], []
        assert to == asker
        assert isinstance(granted, Granted)
        assert granted.session is not None
        home = Home("there", None, False, (known.version, known.author), "here")
        rig.federation.receive(THERE, Notices((Notice("c/nomad", known.version + 1, "there", encode(home)),)))
        rig.federation._addresses["there"] = THERE
        rig.federation.receive(asker, Claim(7, "nomad", None))
        assert rig.said == [(THERE, passed_on)]
        rig.federation.receive(THERE, passed_on)  # who does not agree: there is no end otherwise
        assert rig.said[-1] == (asker, Granted(7, "nomad", None, "", ()))


@story
async def test_a_copy_that_cannot_be_read_is_given_up_and_not_sent_without_end(tmp_path: Path) -> None:
    async with lone_broker(tmp_path) as rig:
        for number, body in enumerate((b"", b"\x95\xa1\xff\xa1x", b"\xc1")):
            rig.federation.receive(THERE, Parcel(f"k{number}", ("here",), RELAY, body, number))
        await rig.quiet()
        confirmed = [message.number for _, message in rig.said if isinstance(message, Stored)]
        assert confirmed == [0, 1, 2]
