"""Both ends prove that they know the secret, and nothing that was sealed can be read, forged, repeated or left out."""

from __future__ import annotations

import pytest

from nearcast.runtime.live.secured import Handshake, NotUnderstood, WrongSecret, complained, complaint

SECRET = b"a secret of two"


def ends(one: bytes = SECRET, other: bytes = SECRET) -> tuple[Handshake, Handshake]:
    caller = Handshake(one, "a@127.0.0.1:1", "instance a", 1, called=False)
    called = Handshake(other, "b@127.0.0.1:2", "instance b", 2, called=True)
    assert called.hear(caller.introduction).address == "a@127.0.0.1:1"
    assert caller.hear(called.introduction).instance == "instance b"
    return caller, called


def test_who_knows_the_secret_is_believed() -> None:
    caller, called = ends()
    called.check(caller.proof())
    assert caller.judged(called.verdict("")) == ""
    caller, called = ends()
    called.check(caller.proof())
    assert caller.judged(called.verdict("no room")) == "no room"


def test_who_knows_another_secret_is_not() -> None:
    caller, called = ends(other=b"another one")
    with pytest.raises(WrongSecret):
        called.check(caller.proof())
    caller, called = ends(other=b"another one")
    with pytest.raises(WrongSecret):
        caller.judged(called.verdict(""))


def test_a_proof_of_another_connection_proves_nothing() -> None:
    recorded = ends()[0].proof()
    _, called = ends()
    with pytest.raises(WrongSecret):
        called.check(recorded)


def test_ones_own_words_prove_nothing_either() -> None:
    caller, called = ends()
    called.check(caller.proof())
    with pytest.raises(WrongSecret):
        called.incoming.unseal(called.outgoing.seal(b"mirrored"))


def test_frames_cannot_be_changed_repeated_or_left_out() -> None:
    caller, called = ends()
    first, second = caller.outgoing.seal(b"first"), caller.outgoing.seal(b"second")
    assert b"first" not in first
    with pytest.raises(WrongSecret):
        called.incoming.unseal(second)  # the first one is missing
    caller, called = ends()
    frame = caller.outgoing.seal(b"once")
    assert called.incoming.unseal(frame) == b"once"
    with pytest.raises(WrongSecret):
        called.incoming.unseal(frame)
    caller, called = ends()
    changed = bytearray(caller.outgoing.seal(b"true"))
    changed[0] ^= 1
    with pytest.raises(WrongSecret):
        called.incoming.unseal(bytes(changed))


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1", b"\x10\x0c\x00\x04MQTT", b"\x96\xa8nearcast"])
def test_what_is_no_introduction_is_not_understood(said: bytes) -> None:
    with pytest.raises(NotUnderstood):
        Handshake(SECRET, "a@127.0.0.1:1", "a", 1, called=True).hear(said)


def test_a_complaint_is_told_from_an_answer() -> None:
    caller, called = ends()
    called.check(caller.proof())
    assert complained(complaint("another secret")) == "another secret"
    assert complained(called.verdict("")) is None


def test_lists_in_lists_without_end_are_no_introduction() -> None:
    whole = Handshake(b"shared", "two@127.0.0.1:2", "i", 1, called=False).introduction
    hostile = bytes((whole[0] + 1,)) + whole[1:] + b"\x91" * 3_000 + b"\x90"  # one element more than there should be
    with pytest.raises(NotUnderstood):
        Handshake(b"shared", "one@127.0.0.1:1", "j", 1, called=True).hear(hostile)
