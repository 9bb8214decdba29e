"""What hosts say to each other, and how it looks on the wire.

A message is declared once, as a frozen struct; its wire form is msgpack, made by ``msgspec``.  The simulator counts the bytes
that the live half would send, because it asks the same encoder.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar, Union

import msgspec

PORT_BYTES: Final = 1
"""Every message on a link is preceded by the number of the port it is for."""


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Base of all messages: ``class Hello(Message, frozen=True, tag="hello"): ...``; the tag is the *kind* that records show."""


M = TypeVar("M", bound=Message)
_encode: Final = msgspec.msgpack.Encoder().encode
_parts: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_text: Final = msgspec.msgpack.Decoder(Annotated[str, msgspec.Meta(max_length=64)]).decode


def kind_of(message: Message) -> str:
    return _kind(type(message))


@cache
def _kind(message: type[Message]) -> str:
    return str(message.__struct_config__.tag)


def encoded(message: Message) -> bytes:
    return _encode(message)


def kind_in(data: bytes | memoryview) -> str | None:
    """The kind of an encoded message, also of one that nobody here knows; none if it does not look like a message."""
    try:
        first, *_ = _parts(data)
        kind: str = _text(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    return kind


class Codec(Generic[M]):
    """Reads the kinds of messages that one port understands."""

    def __init__(self, *kinds: type[M]) -> None:
        self.kinds = frozenset(str(kind.__struct_config__.tag) for kind in kinds)
        union: Any = Union[kinds]  # noqa: UP007 - made at run time
        self._decoder = msgspec.msgpack.Decoder(union)

    def decoded(self, data: bytes | memoryview) -> M:
        """The message; raises ``msgspec.DecodeError`` for what is not one of the kinds."""
        try:
            message: M = self._decoder.decode(data)
        except (UnicodeDecodeError, RecursionError) as error:
            # Damaged or hostile data may hold bytes that are no text, or lists in lists without end.
            raise msgspec.DecodeError(str(error)) from None
        return message
