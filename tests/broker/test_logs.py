"""A log names nobody: what clients say is left out, wherever it stands in a message."""

from __future__ import annotations

import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.logs import JsonFormatter, TextFormatter, unquoted

SECRET = "xQ7secret"  # noqa: S105 - a word to look for


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("the publisher's event 'X m' was", "the publisher's event '...'"),
        ("it isn't b'ab' x", "it isn't '...'"),
        ('of "it\'s" and', "of '...'"),
        ("cut 'abc def", "cut '...'"),
        ("listening for mqtt on 127.0.0.1:1883", "listening for mqtt on 127.0.0.1:1883"),
    ],
)
def test_values_are_left_out(text: str, left: str) -> None:
    assert unquoted(text) == left


@given(st.text(), st.text(), st.integers(4, 80))
def test_whatever_a_client_says_is_left_out(before: str, after: str, cut: int) -> None:
    value = before + SECRET + after
    assert SECRET not in unquoted(
        f"client's topic {value!r} is not allowed; see {value!r:.{cut}} or {value.encode()!r}"
    )


def test_both_forms_leave_them_out_also_of_what_went_wrong() -> None:
    for formatter in (TextFormatter("%(message)s"), JsonFormatter()):
        try:
            raise ValueError(f"no {SECRET!r}")
        except ValueError as error:
            record = logging.LogRecord(
                "x", logging.ERROR, __file__, 1, "of %r", (SECRET,), (ValueError, error, error.__traceback__)
            )
        said = formatter.format(record)
        assert SECRET not in said.replace('f"no {SECRET!r}"', "")
        assert "ValueError" in said
        assert __file__.rpartition("/")[2] in said
    assert msgspec.json.decode(said)["message"] == "of '...'"
