"""Who wants to hear of what, what is published, and who was told of it."""

from __future__ import annotations

from typing import Final

from nearcast.records.column import Column, Kind, RecordTable, count, flag, instant, measure, name, offset, place

SUBSCRIPTIONS: Final = RecordTable(
    "subscriptions",
    "A client subscribes or unsubscribes at the broker; by radio alone there is none. Subscribing again under the same id replaces the earlier subscription.",
    (
        instant("time", "when it takes effect"),
        name("client", "who subscribes"),
        name("subscription", "its id among the client's own"),
        name("action", "what the client does", "subscribed", "unsubscribed"),
        name("topic_filter", "MQTT topic filter"),
        measure(
            "radius",
            "metres around the client: its area of interest; null: everywhere, or as `area` says",
            nullable=True,
        ),
        name("area", "the area of interest as text; null: as `radius` says", nullable=True),
        name("condition", "what is asked of the event, in CQL2; null: nothing", nullable=True),
        instant("frame_since", "start of its time frame; null: it has none", nullable=True),
        instant(
            "frame_until", "end of its time frame, which is no longer part of it; null: it has none", nullable=True
        ),
        offset(),
        flag("no_local", "1: not for what the client itself publishes; null: for that, too"),
    ),
    optional=6,
)

EVENTS: Final = RecordTable(
    "events",
    "A published event, with all its receivers in one row.",
    (
        instant("time", "when it was published"),
        Column("event", Kind.TEXT, "its id"),
        name("publisher", "the client that published it; null: unknown", nullable=True),
        name("topic", "MQTT topic"),
        *place("the event's place; null: it has none", nullable=True),
        measure("reach", "metres around its place within which it matters; null: everywhere", nullable=True),
        count("bytes", "size of the payload"),
        name("workload", "what made it, such as `AR`, `LBS` or `RND`; null: an application", nullable=True),
        Column(
            "receivers",
            Kind.TEXTS,
            "the clients that it is for. In a recording of a simulation those that should get it by physical truth: who is up, wants it, and is where it matters when it is published; never its publisher; null: the truth is not known. In a broker's lake, where nobody knows the truth, those whom the broker gave it to when it was published, its publisher included if that wants its own",
            nullable=True,
        ),
        Column("payload", Kind.BYTES, "what it says; null: a simulation has only its size", nullable=True),
        Column("tags", Kind.TEXTS, "its tags; null: none", nullable=True),
        Column("attributes", Kind.TEXT, "JSON object of its attributes; null: none", nullable=True),
        name("reach_area", "the area within which it matters, as text; null: as `reach` says", nullable=True),
        name("addressing", "what is asked of the receiver's context, in CQL2; null: nothing", nullable=True),
        name(
            "timing", "its temporal predicate, in CQL2: when which receivers count; null: at publication", nullable=True
        ),
        count("lifetime", "microseconds after which it no longer matters; null: it always does", nullable=True),
        offset(),
    ),
    optional=8,
)

UNPUBLISHED: Final = RecordTable(
    "unpublished",
    "An event was taken back. One that was taken back before its export has no row in `events`; that of any other stays.",
    (
        instant("time", "from when on it is no longer delivered"),
        Column("event", Kind.TEXT, "its id"),
        offset("published_offset", "the `offset` of the event; null: all events of that id"),
        offset(),
    ),
)

DELIVERIES: Final = RecordTable(
    "deliveries",
    "An event went to further receivers after its publication: those who were, or came, where it matters. Simulations have none.",
    (
        instant("time", "when they were found"),
        Column("event", Kind.TEXT, "its id"),
        offset("published_offset", "the `offset` of the event"),
        Column("receivers", Kind.TEXTS, "the further receivers"),
        offset(),
    ),
)

NOTIFICATIONS: Final = RecordTable(
    "notifications",
    "An event reached a client. Recall and precision count a client once per event, whatever the outcome.",
    (
        instant("time", "when it reached the client"),
        Column("event", Kind.TEXT, "which event"),
        name("client", "whom it reached"),
        name("path", "how it came: `cloud`, `wifi`, `gateway`"),
        name(
            "outcome",
            "`delivered` to the application; a `duplicate` of an earlier copy; `unwanted` by the client's last check",
            *("delivered", "duplicate", "unwanted"),
        ),
        count("delay", "microseconds since it was published"),
        count("hops", "transmissions on its way, from the publisher on"),
    ),
)

GATEWAYS: Final = RecordTable(
    "gateways",
    "The broker chose a client to pass an event on to others near it.",
    (
        instant("time", "when it was chosen"),
        Column("event", Kind.TEXT, "which event"),
        name("gateway", "who was chosen"),
        count("members", "how many others it was to reach; 0: it got the event, and nobody was to get it from there"),
        count("candidates", "out of how many it was chosen, those of its place if there were very many"),
        name("selection", "the algorithm that chose, with its parameters"),
    ),
)
