"""What a job hands to the broker to deliver: events of the past, each to one client.  Not a table of recordings."""

from __future__ import annotations

from typing import Final

from nearcast.records.column import Column, Kind, RecordTable, count, instant, name, place

ANSWERS: Final = RecordTable(
    "answers",
    "A client is to get an event of the past. Of the event it says what the row of `events` says.",
    (
        Column(
            "key", Kind.TEXT, "tells this delivery from all others: one key is delivered once, however often it comes"
        ),
        name("client", "who gets it"),
        Column("event", Kind.TEXT, "id of the event"),
        count("offset", "where the broker's journal has it, or had it"),
        instant("time", "when it was published"),
        name("topic", "MQTT topic"),
        Column("payload", Kind.BYTES, "what it says; null: nothing", nullable=True),
        *place("the event's place; null: it has none", nullable=True),
        Column("tags", Kind.TEXTS, "its tags; null: none", nullable=True),
        Column("attributes", Kind.TEXT, "JSON object of its attributes; null: none", nullable=True),
        name("reach_area", "the area within which it matters, as text; null: everywhere", nullable=True),
        count("lifetime", "microseconds after which it no longer matters; null: it always does", nullable=True),
        name("subscription", "id of the subscription that asked; null: those that match the topic", nullable=True),
        count("number", "the how manieth of `total` it is, on the last one of a batch; null: not said", nullable=True),
        count("total", "how many there are for that question; null: not said", nullable=True),
    ),
    optional=10,
)
