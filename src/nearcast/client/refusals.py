"""What a broker answers, as errors that say what to do."""

from __future__ import annotations

from typing import Final

from nearcast.errors import (
    ConnectionFailed,
    Denied,
    InvalidEvent,
    InvalidSubscription,
    NearcastError,
    NotAuthenticated,
    QuotaExceeded,
    Refused,
)

NOT_AUTHORIZED: Final = 0x87
SESSION_TAKEN_OVER: Final = 0x8E
_IMPLEMENTATION_SPECIFIC: Final = 0x83
_BAD_USER_NAME_OR_PASSWORD: Final = 0x86
_BANNED: Final = 0x8A
_BAD_AUTHENTICATION_METHOD: Final = 0x8C
_TOPIC_FILTER_INVALID: Final = 0x8F
_TOPIC_NAME_INVALID: Final = 0x90
_QUOTA_EXCEEDED: Final = 0x97
_PAYLOAD_FORMAT_INVALID: Final = 0x99

_INVALID: Final = frozenset(
    {_IMPLEMENTATION_SPECIFIC, _TOPIC_FILTER_INVALID, _TOPIC_NAME_INVALID, _PAYLOAD_FORMAT_INVALID}
)
_PASSING: Final = frozenset({0x80, 0x88, 0x89, 0x97, 0x9F})
"""Unspecified, unavailable, busy, quota, connection rate: trying again later may help."""

_WORDS: Final = {
    0x80: "no reason given",
    0x81: "it could not read a packet",
    0x82: "it found an error of protocol",
    0x83: "it has a reason of its own",
    0x84: "it does not speak MQTT 5",
    0x85: "it does not like the client id",
    0x86: "wrong user name or password",
    0x87: "not authorised",
    0x88: "it is not available at present",
    0x89: "it is busy",
    0x8A: "this client is banned",
    0x8B: "it shuts down",
    0x8C: "wrong method of authentication",
    0x8D: "it heard nothing for too long",
    0x8E: "another client has connected with the same client id",
    0x8F: "the topic filter is not valid",
    0x90: "the topic is not valid",
    0x91: "the packet id is in use",
    0x93: "too many messages at a time",
    0x95: "the packet is too large",
    0x96: "too many messages in too short a time",
    0x97: "a quota is used up",
    0x98: "by order of its operator",
    0x99: "the payload is not what its format says",
    0x9C: "use another server",
    0x9D: "the server has moved",
    0x9F: "too many connections in too short a time",
    0xA1: "it does not number subscriptions",
    0xA2: "it does not allow wildcards",
}


def connection_refused(broker: str, reason: int, message: str | None, user: str | None) -> NearcastError:
    """The broker does not let this client in."""
    why = _why(reason, message)
    if reason in (_BAD_USER_NAME_OR_PASSWORD, _BAD_AUTHENTICATION_METHOD):
        who = "without a user name" if user is None else f"as {user!r}"
        return NotAuthenticated(f"{broker} does not let this client in {who}: {why}; check user and password", reason)
    if reason in (NOT_AUTHORIZED, _BANNED):
        hint = "; give a user and a password" if user is None else ""
        return Denied(f"{broker} does not let this client in: {why}{hint}", reason)
    if reason in _PASSING:
        return ConnectionFailed(f"{broker} refuses connections for now: {why}; try again later")
    return ConnectionFailed(f"{broker} refuses the connection: {why}")


def publication_refused(what: str, reason: int, message: str | None) -> NearcastError:
    return _refused(what, reason, message, InvalidEvent)


def subscription_refused(what: str, reason: int, message: str | None) -> NearcastError:
    return _refused(what, reason, message, InvalidSubscription)


def _refused(
    what: str, reason: int, message: str | None, invalid: type[InvalidEvent | InvalidSubscription]
) -> NearcastError:
    text = f"the broker refuses {what}: {_why(reason, message)}"
    if reason == NOT_AUTHORIZED:
        return Denied(text, reason)
    if reason == _QUOTA_EXCEEDED:
        return QuotaExceeded(text, reason)
    if reason in _INVALID:
        return invalid(text)
    return Refused(text, reason)


def dismissed(broker: str, reason: int, message: str | None) -> ConnectionFailed:
    """The broker has ended the connection."""
    hint = "; give every client an id of its own" if reason == SESSION_TAKEN_OVER else ""
    return ConnectionFailed(f"{broker} has ended the connection: {_why(reason, message)}{hint}")


def is_final(reason: int) -> bool:
    """Whether connecting again would only repeat it."""
    return reason in (SESSION_TAKEN_OVER, NOT_AUTHORIZED, _BANNED)


def _why(reason: int, message: str | None) -> str:
    return message or _WORDS.get(reason, f"reason 0x{reason:02x}")
