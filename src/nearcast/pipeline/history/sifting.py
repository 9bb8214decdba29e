"""Events, batch by batch, against all questions at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from nearcast.matching import EventBatch, Matcher
from nearcast.matching.open_cases import asks_direction
from nearcast.metrics.columns import Flags, Wholes
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.predicate import Predicate
from nearcast.model.subscription import Subscription
from nearcast.model.value_text import attributes_in
from nearcast.pipeline.history.known import whole_instants
from nearcast.pipeline.history.questions import Question
from nearcast.pipeline.rows import point_of

if TYPE_CHECKING:
    import pyarrow as pa

_NEVER: Final = 2**63 - 1


class Sieve:
    """Holds the questions as a broker holds subscribers, each where it was when it asked."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._matcher: Final = Matcher()
        self._directions: Final[dict[int, Predicate]] = {}
        """Conditions that the matcher cannot judge, by question."""
        self._by_content = False
        speaking = [each for each in questions if each.frame is not None]
        for each in speaking:
            self._add(each)
        self._questions: Final = speaking
        """In the order of the matcher's numbers, as they became known to it."""
        self._asked: Final = np.array([each.asked for each in speaking], np.int64)
        self._numbers: Final = np.array([each.number for each in speaking], np.int64)
        self._not_own: Final = np.array([each.subscription.no_local for each in speaking], np.bool_)

    def _add(self, question: Question) -> None:
        wanted, where = question.subscription, question.subscription.where
        assert question.frame is not None
        if where is not None and asks_direction(where):
            # The matcher would compare with the event before; but nobody has come nearer to what was over when it asked.
            self._directions[question.number] = where
            where = None
        self._by_content = self._by_content or where is not None
        client = str(question.number)
        self._matcher.subscribe(client, Subscription(wanted.topic, where, wanted.area, question.frame))
        if question.position is not None:
            self._matcher.move(client, question.position.lat, question.position.lon)

    def sifted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that questions ask for, once for each, with ``question``, ``client``, and whether it is ``ahead`` of the cursor.

        Of the rows, ``gone`` is the instant at which the event was unpublished; it is looked at and taken away.
        """
        import pyarrow as pa

        rows, askers = self._interested(batch)
        kept = np.flatnonzero(_ends(batch)[rows] > self._asked[askers])
        rows, askers = rows[kept], askers[kept]
        if self._not_own.any():
            kept = np.flatnonzero(~self._refused(batch, rows, askers))
            rows, askers = rows[kept], askers[kept]
        if self._directions:
            kept = np.flatnonzero(self._judged(batch, rows, askers))
            rows, askers = rows[kept], askers[kept]
        found = batch.drop_columns(["gone"]).take(pa.array(rows, pa.int64()))
        clients = [self._questions[asker].client for asker in askers.tolist()]
        added = [
            pa.array(self._numbers[askers], pa.int64()),
            pa.array(clients, pa.string()),
            pa.array(self._ahead(found, askers), pa.bool_()),
        ]
        return pa.RecordBatch.from_arrays(
            [*added, *found.columns], ["question", "client", "ahead", *found.schema.names]
        )

    def _interested(self, batch: pa.RecordBatch) -> tuple[Wholes, Wholes]:
        """Pairs of a row and of the position of the question that asks for it."""
        rows, askers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for those, events in self._batches(batch):
            matches = self._matcher.match_batch(events)
            rows.append(those[np.repeat(np.arange(len(those)), np.diff(matches.offsets))])
            askers.append(matches.clients.astype(np.int64))
        return np.concatenate(rows), np.concatenate(askers)

    def _batches(self, batch: pa.RecordBatch) -> Iterator[tuple[Wholes, EventBatch]]:
        """As columns, and those that need more than columns as events."""
        everything = np.arange(batch.num_rows)
        special = np.zeros(batch.num_rows, np.bool_)
        if self._by_content:
            for name in ("attributes", "tags"):
                special |= batch[name].is_valid().to_numpy(zero_copy_only=False)
        plain, rich = everything[~special], everything[special]
        if len(plain):
            yield plain, _columns(batch, plain)
        if len(rich):
            yield rich, EventBatch.of(list(_events(batch, rich)))

    def _refused(self, batch: pa.RecordBatch, rows: Wholes, askers: Wholes) -> Flags:
        """Whether the event is the asker's own, which it does not want.  To the matcher they go by other names."""
        refused = self._not_own[askers]
        publishers = batch["publisher"]
        for case in np.flatnonzero(refused).tolist():
            refused[case] = publishers[int(rows[case])].as_py() == self._questions[askers[case]].client
        return refused

    def _judged(self, batch: pa.RecordBatch, rows: Wholes, askers: Wholes) -> Flags:
        accepted = np.ones(len(rows), np.bool_)
        for case, (row, number) in enumerate(zip(rows.tolist(), self._numbers[askers].tolist(), strict=True)):
            where = self._directions.get(number)
            if where is not None:
                (event,) = _events(batch, np.array([row]))
                accepted[case] = evaluate(where, event.properties()) is True
        return accepted

    def _ahead(self, found: pa.RecordBatch, askers: Wholes) -> Flags:
        """Which of the rows come after the last one that was given before."""
        import pyarrow.compute as pc

        afters = [self._questions[asker].after for asker in askers.tolist()]
        times, last = whole_instants(found["time"]), np.array([after[0] for after in afters], np.int64)
        ahead: Flags = times > last
        for case in np.flatnonzero(times == last).tolist():
            offset = pc.coalesce(found["offset"][case], -1).as_py()
            ahead[case] = (offset, found["event"][case].as_py()) > afters[case][1:]
        return ahead


def _ends(batch: pa.RecordBatch) -> Wholes:
    """When events cease to exist: they have expired or were unpublished."""
    published = whole_instants(batch["time"])
    lifetime = batch["lifetime"].fill_null(_NEVER).to_numpy(zero_copy_only=False)
    gone = whole_instants(batch["gone"], _NEVER)
    return np.minimum(
        gone, np.where(lifetime > _NEVER - published, _NEVER, published + np.minimum(lifetime, _NEVER - published))
    )


def _columns(batch: pa.RecordBatch, rows: Wholes) -> EventBatch:
    import pyarrow as pa

    those = batch.take(pa.array(rows, pa.int64()))
    topics = those["topic"].dictionary_encode()
    lat, lon = (those[name].fill_null(np.nan).to_numpy(zero_copy_only=False) for name in ("lat", "lon"))
    return EventBatch(
        published=whole_instants(those["time"]),
        lat=lat,
        lon=lon,
        topics=topics.dictionary.to_pylist(),
        topic=topics.indices.to_numpy(zero_copy_only=False),
    )


def _events(batch: pa.RecordBatch, rows: Wholes) -> Iterator[Event]:
    """What a condition may ask for of an event, and nothing else."""
    import pyarrow as pa

    those = batch.take(pa.array(rows, pa.int64()))
    names = ("event", "topic", "attributes", "tags", "lat", "lon")
    for at, name, topic, attributes, tags, lat, lon in zip(
        whole_instants(those["time"]).tolist(), *(those[name].to_pylist() for name in names), strict=True
    ):
        yield Event(name, topic, at, attributes_in(attributes), tags or (), place=point_of(lat, lon))
