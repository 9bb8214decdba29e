import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.runtime.messages import Codec, Message, encoded, kind_in, kind_of


class Hello(Message, frozen=True, array_like=True, tag="hello"):
    name: str
    number: int = 0


class Bye(Message, frozen=True, array_like=True, tag="bye"):
    reason: str | None = None


class Untold(Message, frozen=True, array_like=True, tag="untold"):
    """Not one of the kinds of the codec."""


MESSAGES = st.one_of(
    st.builds(Hello, st.text(max_size=20), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Bye, st.none() | st.text(max_size=20)),
)


@given(MESSAGES)
def test_what_was_encoded_is_decoded(message: Message) -> None:
    codec = Codec(Hello, Bye)
    data = encoded(message)
    assert codec.decoded(data) == message
    assert codec.decoded(memoryview(data)) == message


def test_the_tag_is_the_kind_and_travels_first() -> None:
    assert kind_of(Hello("ada")) == "hello"
    assert kind_in(encoded(Hello("ada"))) == "hello"
    assert kind_in(encoded(Untold())) == "untold"
    assert msgspec.msgpack.decode(encoded(Hello("ada", 3))) == ["hello", "ada", 3]


@given(st.binary(max_size=60))
def test_what_is_not_one_of_the_kinds_is_refused_and_never_misread(data: bytes) -> None:
    codec = Codec(Hello, Bye)
    try:
        message = codec.decoded(data)
    except msgspec.DecodeError:
        return
    assert codec.decoded(encoded(message)) == message


def test_other_kinds_are_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        Codec(Hello, Bye).decoded(encoded(Untold()))
    assert Codec(Hello, Bye).kinds == {"hello", "bye"}


def test_messages_do_not_change() -> None:
    message = Hello("ada")
    with pytest.raises(AttributeError):
        message.name = "eve"  # type: ignore[misc]
