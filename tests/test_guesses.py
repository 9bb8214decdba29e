"""Unknown words are answered with the one that was probably meant."""

from nearcast.guesses import guess, near


def test_capitals_and_hyphens_do_not_count() -> None:
    assert guess("TLS-port", ["host", "tls_port"]) == "; did you mean 'tls_port'?"
    assert near("km/H", ["m/s", "km/h"]) == ["km/h"]


def test_words_are_given_as_they_are_written_and_the_nearest_first() -> None:
    assert near("mib", ["KiB", "MiB", "B"], most=2) == ["MiB", "KiB"]


def test_nothing_is_said_if_nothing_is_near() -> None:
    assert guess("radius", ["port", "host"]) == ""
