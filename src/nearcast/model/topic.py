"""MQTT 5 topics and topic filters (OASIS MQTT 5.0, 4.7).

``topic_matches`` is the definition; ``TopicTrie`` answers which of many filters match a topic without looking
at all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nearcast.errors import InvalidTopic

LONGEST: Final = 65_535
"""Bytes of UTF-8 that an MQTT string may have."""


def checked_topic(topic: str) -> str:
    """The topic, or ``InvalidTopic``."""
    _checked_text(topic, "topic")
    if "+" in topic or "#" in topic:
        raise InvalidTopic(f"the topic {_shown(topic)} holds a wildcard; '+' and '#' are for subscriptions")
    return topic


def checked_topic_filter(topic_filter: str) -> str:
    """The topic filter, or ``InvalidTopic``."""
    _checked_text(topic_filter, "topic filter")
    levels = topic_filter.split("/")
    if levels[0] == "$share":
        raise InvalidTopic(
            f"the topic filter {_shown(topic_filter)} is a shared subscription: who of the group receives is the broker's choice; "
            "subscribe to the part after the group's name",
        )
    for position, level in enumerate(levels):
        if "+" in level and level != "+":
            raise InvalidTopic(
                f"in the topic filter {_shown(topic_filter)} the '+' must stand alone in its level, such as 'a/+/b'"
            )
        if "#" in level and (level != "#" or position < len(levels) - 1):
            raise InvalidTopic(
                f"in the topic filter {_shown(topic_filter)} the '#' must stand alone in the last level, such as 'a/#'"
            )
    return topic_filter


def topic_matches(topic_filter: str, topic: str) -> bool:
    """Whether a valid filter matches a valid topic."""
    if topic_filter == topic:
        return True
    wanted, given = topic_filter.split("/"), topic.split("/")
    # A wildcard in the first level leaves out the topics that servers keep for themselves (4.7.2).
    if given[0].startswith("$") and wanted[0] in ("+", "#"):
        return False
    for position, level in enumerate(wanted):
        if level == "#":  # also matches the level above: 'a/#' matches 'a'
            return True
        if position >= len(given) or level not in ("+", given[position]):
            return False
    return len(wanted) == len(given)


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    # A dict rather than a set: the order of adding is the order of answers.
    ids: dict[int, None] = field(default_factory=dict)


class TopicTrie:
    """Many topic filters, each with one or more numbers."""

    def __init__(self) -> None:
        self._root = _Node()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, topic_filter: str, number: int) -> None:
        """Add ``number`` under the filter; adding it again changes nothing."""
        node = self._root
        for level in checked_topic_filter(topic_filter).split("/"):
            node = node.children.setdefault(level, _Node())
        if number not in node.ids:
            node.ids[number] = None
            self._size += 1

    def remove(self, topic_filter: str, number: int) -> bool:
        """Take ``number`` away; whether it was there."""
        node, way = self._root, []
        for level in topic_filter.split("/"):
            child = node.children.get(level)
            if child is None:
                return False
            way.append((node, level))
            node = child
        if number not in node.ids:
            return False
        del node.ids[number]
        self._size -= 1
        for parent, level in reversed(way):
            child = parent.children[level]
            if child.ids or child.children:
                break
            del parent.children[level]
        return True

    def match(self, topic: str) -> list[int]:
        """The numbers of all filters that match; a number added under several of them appears as often."""
        levels = topic.split("/")
        found: list[int] = []
        nodes = [self._root]
        for position, level in enumerate(levels):
            wild = position > 0 or not level.startswith("$")
            following: list[_Node] = []
            for node in nodes:
                if wild:
                    found.extend(_ids(node, "#"))
                    following.extend(_children(node, "+"))
                following.extend(_children(node, level))
            nodes = following
        for node in nodes:
            found.extend(node.ids)
            found.extend(_ids(node, "#"))
        return found


def _children(node: _Node, level: str) -> Iterator[_Node]:
    child = node.children.get(level)
    if child is not None:
        yield child


def _ids(node: _Node, level: str) -> Iterator[int]:
    for child in _children(node, level):
        yield from child.ids


def _checked_text(text: str, what: str) -> None:
    if not isinstance(text, str):
        raise InvalidTopic(f"a {what} is a string, not {text!r}")
    if not text:
        raise InvalidTopic(f"a {what} has at least one character")
    if "\0" in text:
        raise InvalidTopic(f"the {what} {_shown(text)} holds a NUL character, which MQTT forbids")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidTopic(f"the {what} {_shown(text)} is not valid Unicode: it holds a lone surrogate") from None
    if size > LONGEST:
        raise InvalidTopic(f"the {what} {_shown(text)} has {size} bytes; MQTT allows {LONGEST}")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 60 else repr(text[:57] + "...")
