"""Events as CloudEvents (1.0, JSON) and as GeoJSON Features, both ways.

What place, reach, addressing and attributes mean is the wire contract's business (``nearcast.mqtt``): here they only change their
clothes.  A CloudEvent's ``subject`` is the topic; its extension attributes are those of the event, but for ``place``, ``reach``,
``to``, ``when`` and ``tags``.  In a Feature, the geometry is the place and ``properties`` are all the rest.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidEvent
from nearcast.journal.entries import EventEntry
from nearcast.model.time import to_text as instant_text
from nearcast.model.value_text import tree_of_value, value_in
from nearcast.mqtt import names
from nearcast.mqtt.publication import Publication, publication
from nearcast.mqtt.trace_context import TraceContext, with_context

CLOUD_EVENT: Final = "application/cloudevents+json"
CLOUD_EVENTS: Final = "application/cloudevents-batch+json"
GEOJSON: Final = "application/geo+json"
SOURCE: Final = "/nearcast"
_OWN: Final = {"place": names.PLACE, "reach": names.REACH, "to": names.TO, "when": names.WHEN}
_CLOUD: Final = frozenset(
    {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data", "data_base64"}
)
_FEATURE: Final = frozenset({"topic", "payload", "payload_base64", "contenttype", "lifetime", "tags", *_OWN})


@dataclass(frozen=True, slots=True)
class Posted:
    """An event as somebody posted it."""

    publication: Publication
    content_type: str | None
    properties: tuple[tuple[str, str], ...]

    def in_trace(self, context: TraceContext) -> Posted:
        """The same as part of that trace."""
        attributes = {**self.publication.attributes, **dict(context.properties())}
        publication = msgspec.structs.replace(self.publication, attributes=attributes)
        return Posted(publication, self.content_type, tuple(with_context(self.properties, context)))


def cloud_event_in(tree: Mapping[str, Any]) -> Posted:
    if tree.get("specversion") != "1.0":
        raise InvalidEvent("a CloudEvent has specversion 1.0")
    topic = _text(tree, "subject") or _text(tree, "type")
    if not topic:
        raise InvalidEvent("the topic of a CloudEvent is its subject (or else its type); give one")
    for name in ("source", "type", "time"):
        _text(tree, name)
    attributes = {
        name: value
        for name, value in tree.items()
        if name not in _CLOUD and name not in _OWN and name not in {"tags", "lifetime"}
    }
    return _posted(
        topic,
        _payload(tree, "data", "data_base64"),
        _text(tree, "id"),
        _text(tree, "datacontenttype"),
        tree,
        attributes,
    )


def feature_in(tree: Mapping[str, Any]) -> Posted:
    properties = tree.get("properties")
    if tree.get("type") != "Feature" or not isinstance(properties, dict):
        raise InvalidEvent('a GeoJSON event is {"type": "Feature", "geometry": ..., "properties": {"topic": ..., ...}}')
    topic = _text(properties, "topic")
    if not topic:
        raise InvalidEvent("the properties of the Feature name a topic")
    geometry = tree.get("geometry")
    given = dict(properties)
    if geometry is not None:
        if not isinstance(geometry, dict) or geometry.get("type") != "Point" or "place" in given:
            raise InvalidEvent("the geometry is where it happened, a Point; where it matters is the property reach")
        try:
            lon, lat = geometry["coordinates"][:2]
            if not (_is_number(lon) and _is_number(lat)):
                raise TypeError
            given["place"] = f"{float(lat)!r},{float(lon)!r}"
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidEvent("the coordinates of the Point are [lon, lat]") from None
    attributes = {name: value for name, value in properties.items() if name not in _FEATURE}
    return _posted(
        topic,
        _payload(given, "payload", "payload_base64"),
        _text(tree, "id"),
        _text(given, "contenttype"),
        given,
        attributes,
    )


def _posted(
    topic: str,
    payload: bytes,
    event: str | None,
    content_type: str | None,
    given: Mapping[str, Any],
    attributes: Mapping[str, Any],
) -> Posted:
    properties: list[tuple[str, str]] = [(names.ID, event)] if event else []
    properties += [(own, _written(given[name])) for name, own in _OWN.items() if given.get(name) is not None]
    tags = given.get("tags", ())
    if isinstance(tags, str):  # CloudEvents have no lists
        tags = [tag.strip() for tag in tags.split(",") if tag.strip()]
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) and "\0" not in tag for tag in tags):
        raise InvalidEvent(f"tags are a list of texts, not {tags!r:.40}")
    properties += [(names.TAG, tag) for tag in tags]
    properties += [(name, _attribute(value)) for name, value in attributes.items()]
    lifetime = given.get("lifetime")
    if isinstance(lifetime, float) and lifetime.is_integer():  # JSON knows one kind of number
        lifetime = int(lifetime)
    if lifetime is not None and (isinstance(lifetime, bool) or not isinstance(lifetime, int) or lifetime <= 0):
        raise InvalidEvent("lifetime is a whole number of seconds")
    return Posted(publication(topic, payload, properties, lifetime), content_type, tuple(properties))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(tree: Mapping[str, Any], name: str) -> str | None:
    value = tree.get(name)
    if value is not None and (not isinstance(value, str) or "\0" in value):
        raise InvalidEvent(f"{name} is a text without NUL, not {value!r:.40}")
    return value


def _written(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _attribute(value: Any) -> str:
    # A text that looks like JSON stays a text.
    return msgspec.json.encode(value).decode()


def _payload(tree: Mapping[str, Any], plain: str, encoded: str) -> bytes:
    if encoded in tree:
        try:
            return base64.b64decode(tree[encoded], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise InvalidEvent(f"{encoded} is not base64") from None
    value = tree.get(plain, "")
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


# Out


def cloud_event(entry: EventEntry) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "specversion": "1.0",
        "id": entry.id,
        "source": SOURCE,
        "type": "event",
        "subject": entry.topic,
        "time": instant_text(entry.published),
        **_attributes(entry),
    }
    if entry.lat is not None:
        tree["place"] = f"{entry.lat!r},{entry.lon!r}"
    if entry.tags:
        tree["tags"] = ",".join(entry.tags)
    if entry.content_type is not None:
        tree["datacontenttype"] = entry.content_type
    _put_payload(tree, entry, "data", "data_base64")
    return tree


def feature(entry: EventEntry) -> dict[str, Any]:
    geometry = None if entry.lat is None else {"type": "Point", "coordinates": [entry.lon, entry.lat]}
    properties: dict[str, Any] = {
        **_attributes(entry),
        "topic": entry.topic,
        "published": instant_text(entry.published),
    }
    if entry.tags:
        properties["tags"] = list(entry.tags)
    if entry.content_type is not None:
        properties["contenttype"] = entry.content_type
    _put_payload(properties, entry, "payload", "payload_base64")
    return {"type": "Feature", "id": entry.id, "geometry": geometry, "properties": properties}


def _attributes(entry: EventEntry) -> dict[str, Any]:
    return {name: tree_of_value(name, value_in(text)) for name, text in entry.attributes}


def _put_payload(tree: dict[str, Any], entry: EventEntry, plain: str, encoded: str) -> None:
    try:
        tree[plain] = entry.payload.decode()
    except UnicodeDecodeError:
        tree[encoded] = base64.b64encode(entry.payload).decode()
