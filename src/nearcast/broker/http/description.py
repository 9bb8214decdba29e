"""What the OpenAPI description says beyond what the routes say of themselves: problems, who may ask, and bodies that are read by hand."""

from __future__ import annotations

from typing import Final

from litestar import Litestar
from litestar.openapi.spec import (
    OpenAPIHeader,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    PathItem,
    Reference,
    RequestBody,
    Schema,
    SecurityScheme,
)
from litestar.openapi.spec.enums import OpenAPIType

from nearcast.broker.http.formats import CLOUD_EVENT, CLOUD_EVENTS, GEOJSON
from nearcast.journal.entries import NAMES

PROBLEM: Final = "application/problem+json"
ARROW: Final = "application/vnd.apache.arrow.stream"
TEXT: Final = "text/plain; charset=utf-8"
BASIC: Final = "basic"

PLACE: Final = r"^-?([0-8]?[0-9](\.[0-9]{1,9})?|90),-?((1[0-7][0-9]|[0-9]?[0-9])(\.[0-9]{1,9})?|180)$"
"""``lat,lon`` in degrees."""

OPEN: Final = frozenset({"/healthz", "/readyz", "/dashboard/api/me", "/dashboard/login", "/dashboard/logout"})
"""For everybody, or it finds out itself who asks."""

_PROBLEMS: Final = {
    "400": "What was asked for cannot be.",
    "401": "Say who you are, by HTTP Basic.",
    "403": "No rule allows it.",
    "404": "There is no such thing.",
    "405": "Not in this way.",
    "409": "Something else is in its way.",
    "410": "It was there, and was deleted.",
    "413": "The body is too large.",
    "422": "The page asked for something that cannot be.",
    "429": "Too much at once; try again later.",
    "500": "The broker made a mistake; its log says which.",
    "503": "The disk does not take it.",
}
_STRING, _NUMBER, _OBJECT = OpenAPIType.STRING, OpenAPIType.NUMBER, OpenAPIType.OBJECT


def describe(app: Litestar) -> None:
    """Complete the description of all routes."""
    document = app.openapi_schema
    components = document.components
    components.schemas["Problem"] = _problem()
    components.schemas["CloudEvent"] = _cloud_event()
    components.schemas["Feature"] = _feature()
    components.security_schemes = {BASIC: SecurityScheme(type="http", scheme="basic")}
    for path, item in (document.paths or {}).items():
        for operation in _operations(item):
            _complete(path, operation)
            if operation.request_body is not None:
                _close(operation.request_body, components.schemas)
    events = (document.paths or {})["/events"]
    assert events.post is not None
    assert events.get is not None
    _take_events(events.post)
    _answer_events(events.get)
    for path in ("/journal", "/journal/stretches"):
        _answer(document.paths, path, ARROW, Schema(type=_STRING, content_media_type=ARROW))
    for path in ("/healthz", "/readyz", "/metrics"):
        _answer(document.paths, path, TEXT, Schema(type=_STRING))
    ready = (document.paths or {})["/readyz"].get
    assert ready is not None
    assert ready.responses is not None
    ready.responses["503"] = OpenAPIResponse(
        description="Not ready.", content={TEXT: OpenAPIMediaType(schema=Schema(type=_STRING))}
    )
    kinds = next(each for each in (document.paths or {})["/journal/stretches"].get.parameters if each.name == "kinds")  # type: ignore[union-attr]
    kinds.schema = Schema(  # type: ignore[union-attr]
        type=OpenAPIType.ARRAY, items=Schema(type=_STRING, enum=sorted(NAMES.values()))
    )
    notifications = (document.paths or {})["/notifications"].post
    assert notifications is not None
    notifications.request_body = RequestBody(
        {ARROW: OpenAPIMediaType(schema=Schema(type=_STRING, content_media_type=ARROW))}, required=True
    )


def _close(thing: object, schemas: dict[str, Schema]) -> None:
    """What is asked for in JSON has no words but those that are named (``forbid_unknown_fields``), however deep."""
    if isinstance(thing, RequestBody):
        for media in thing.content.values():
            _close(media.schema, schemas)
    elif isinstance(thing, Reference):
        _close(schemas[thing.ref.rpartition("/")[2]], schemas)
    elif isinstance(thing, Schema):
        for part in (thing.items, *(thing.one_of or ()), *(thing.any_of or ()), *(thing.properties or {}).values()):
            _close(part, schemas)
        if thing.properties:
            thing.additional_properties = False


def _operations(item: PathItem) -> list[Operation]:
    return [each for each in (item.get, item.put, item.post, item.delete, item.patch) if each is not None]


def _complete(path: str, operation: Operation) -> None:
    responses = operation.responses = operation.responses or {}
    problem = OpenAPIMediaType(schema=Reference(ref="#/components/schemas/Problem"))
    closed = path not in OPEN
    for status, text in _PROBLEMS.items():
        if not closed and status in {"401", "403"} and not path.startswith("/dashboard"):
            continue
        headers = {"WWW-Authenticate": OpenAPIHeader(schema=Schema(type=_STRING))} if status == "401" else {}
        if status == "429":
            headers = {"Retry-After": OpenAPIHeader(description="Seconds, if known.", schema=Schema(type=_STRING))}
        if status == "405":
            headers = {"Allow": OpenAPIHeader(schema=Schema(type=_STRING))}
        responses[status] = OpenAPIResponse(description=text, headers=dict(headers), content={PROBLEM: problem})
    empty = responses.get("204")
    if isinstance(empty, OpenAPIResponse):
        empty.content = None
    if closed:
        operation.security = [{BASIC: []}]


def _answer(paths: dict[str, PathItem] | None, path: str, media_type: str, schema: Schema) -> None:
    operation = (paths or {})[path].get
    assert operation is not None
    assert operation.responses is not None
    answer = operation.responses["200"]
    assert isinstance(answer, OpenAPIResponse)
    answer.content = {media_type: OpenAPIMediaType(schema=schema)}


def _problem() -> Schema:
    return Schema(
        type=_OBJECT,
        title="Problem",
        description="RFC 9457",
        properties={
            "type": Schema(type=_STRING),
            "title": Schema(type=_STRING),
            "status": Schema(type=OpenAPIType.INTEGER),
            "detail": Schema(type=_STRING),
        },
        required=["type", "title", "status", "detail"],
    )


_ANY: Final = Schema(description="Text, or anything else that JSON has.")
_WORDS: Final = Schema(type=_STRING, pattern=r"^[^\u0000]*$")
_TOPIC: Final = Schema(type=_STRING, min_length=1, pattern=r"^[^+#$\u0000]+$")
_AREA: Final = Schema(type=[_STRING, _NUMBER, _OBJECT], description="Where it matters: an area as in MQTT.")
_OWN: Final = {
    "place": Schema(type=_STRING, pattern=PLACE),
    "reach": _AREA,
    "to": Schema(type=_STRING, description="Whom it concerns: CQL2 over the receiver's context."),
    "when": Schema(type=_STRING, description="When that context must be valid: a temporal predicate."),
    "lifetime": Schema(type=OpenAPIType.INTEGER, minimum=1, description="Seconds."),
    "tags": Schema(type=[_STRING, OpenAPIType.ARRAY], items=Schema(type=_STRING, min_length=1)),
}
_NAMES: Final = Schema(pattern=r"^(?!nc-)[^\u0000]*$")


def _cloud_event() -> Schema:
    return Schema(
        type=_OBJECT,
        title="CloudEvent",
        description="CloudEvents 1.0; `subject`, or else `type`, is the topic; extension attributes are the event's own.",
        properties={
            "specversion": Schema(type=_STRING, enum=["1.0"]),
            "id": _WORDS,
            "source": _WORDS,
            "type": _TOPIC,
            "subject": _TOPIC,
            "time": _WORDS,
            "datacontenttype": _WORDS,
            "data": _ANY,
            **_OWN,
        },
        required=["specversion"],
        any_of=[Schema(required=["subject"]), Schema(required=["type"])],
        property_names=_NAMES,
    )


def _feature() -> Schema:
    longitude = Schema(type=_NUMBER, minimum=-180, maximum=180)
    latitude = Schema(type=_NUMBER, minimum=-90, maximum=90)
    point = Schema(
        type=[_OBJECT, OpenAPIType.NULL],
        properties={
            "type": Schema(type=_STRING, enum=["Point"]),
            "coordinates": Schema(type=OpenAPIType.ARRAY, prefix_items=[longitude, latitude], min_items=2),
        },
        required=["type", "coordinates"],
    )
    properties = Schema(
        type=_OBJECT,
        properties={"topic": _TOPIC, "payload": _ANY, "contenttype": _WORDS, **_OWN},
        required=["topic"],
        property_names=_NAMES,
    )
    return Schema(
        type=_OBJECT,
        title="Feature",
        description="GeoJSON (RFC 7946); the geometry is the place.",
        properties={
            "type": Schema(type=_STRING, enum=["Feature"]),
            "id": _WORDS,
            "geometry": point,
            "properties": properties,
        },
        required=["type", "properties"],
    )


def _take_events(operation: Operation) -> None:
    event, feature = Reference(ref="#/components/schemas/CloudEvent"), Reference(ref="#/components/schemas/Feature")
    several = Schema(type=OpenAPIType.ARRAY, items=event)
    collection = Schema(
        type=_OBJECT,
        properties={
            "type": Schema(type=_STRING, enum=["FeatureCollection"]),
            "features": Schema(type=OpenAPIType.ARRAY, items=feature),
        },
        required=["type", "features"],
    )
    operation.request_body = RequestBody(
        {
            CLOUD_EVENT: OpenAPIMediaType(schema=event),
            CLOUD_EVENTS: OpenAPIMediaType(schema=several),
            GEOJSON: OpenAPIMediaType(schema=Schema(any_of=[feature, collection])),
        },
        required=True,
    )


def _answer_events(operation: Operation) -> None:
    assert operation.responses is not None
    answer = operation.responses["200"]
    assert isinstance(answer, OpenAPIResponse)
    answer.content = {
        GEOJSON: OpenAPIMediaType(schema=Schema(type=_OBJECT)),
        CLOUD_EVENTS: OpenAPIMediaType(schema=Schema(type=OpenAPIType.ARRAY, items=Schema(type=_OBJECT))),
    }
