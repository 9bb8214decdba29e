"""What one run brought, small enough to keep and to hand from process to process."""

from __future__ import annotations

import msgspec

from nearcast.metrics.distribution import BoxPlot


class Bands(msgspec.Struct, frozen=True):
    """Spread within each window; None where there is no value."""

    mean: list[float | None]
    p5: list[float | None]
    p25: list[float | None]
    p50: list[float | None]
    p75: list[float | None]
    p95: list[float | None]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Recall and precision of events and of clients (``metrics.delivery``)."""

    events: int
    due: int
    notified: int
    correct: int
    recall: float | None
    """Mean over events, which is how BYPASS.KOM 6.1.4 defines it."""

    precision: float | None
    client_recall: BoxPlot | None
    client_precision: BoxPlot | None
    doubled: int
    """Pairs (event, client) that were handed to the application twice."""

    mean_delay: float | None
    median_delay: float | None = None
    p95_delay: float | None = None
    """Seconds, over all that were reached and should be."""


class Rate(msgspec.Struct, frozen=True):
    """What passed of one class in one direction."""

    messages: int
    bytes: int
    kilobits_per_second: float
    """Of a mean client that is up."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """Between two transitions, once settled."""

    label: str
    since: float
    until: float
    delivery: Delivery
    rates: dict[str, Rate]
    """By direction and class, such as ``download context``; by radio, such as ``ad hoc download event``."""

    operations_counted: float | None
    operations_done: float | None
    clients: float
    """Mean number that was up."""

    windows_below_one: float | None
    """Share of pairs (client, window) to which something was due with recall below 1."""

    window_recall_p25: float | None
    """Mean over windows of the 25th percentile of the clients' recall."""

    multicast_saving: float | None
    """Share of notifications that one transmission for each channel, instead of one for each receiver, would save."""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """When and where clients followed a transition, in the order of time."""

    clients: int
    """That were there to follow."""

    after: list[float]
    """Seconds after it."""

    x: list[float]
    """Metres from the south-western corner."""

    y: list[float]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A transition of the broker, or of those who spread events: what happened around it."""

    label: str
    at: float
    """Seconds after the start of the run."""

    source: str | None
    target: str | None
    bin: float
    """Seconds of a bin of ``due`` and ``correct``."""

    before: float
    """The bins begin so many seconds before the transition."""

    due: list[int]
    correct: list[int]
    """Pairs by time of publication."""

    control: dict[str, list[int]]
    """Messages in each second from ``before`` on, by direction and class."""

    executed: int
    """Clients that followed, and by when the median, 90 % and the last of them did, in seconds after it."""

    median: float | None
    ninety_percent: float | None
    last: float | None
    first: float | None = None
    followed: Followed | None = None
    """Each of them, if the run looks at how events spread from host to host."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Windows of the whole run."""

    length: float
    starts: list[float]
    recall: Bands
    """Over clients, of the events published in the window."""

    precision: Bands
    rates: dict[str, list[float]]
    """kbit/s of a mean client that is up, by direction and class."""

    operations_counted: list[float | None]
    clients: list[float]
    mechanisms: dict[str, list[int]]
    """How many clients ran which mechanism at the end of each window."""

    delay: list[float | None] = msgspec.field(default_factory=list)
    """Mean seconds, over the events of the window that reached somebody."""


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """Values by place, in square cells."""

    size: float
    x: list[float]
    """Metres from the south-western corner to the middle of the cell."""

    y: list[float]
    values: dict[str, list[int]]


class Timeline(msgspec.Struct, frozen=True):
    """Which scheme a client ran from when on; None: it has gone."""

    client: str
    since: list[float]
    mechanism: list[str | None]


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """All of it.  Times are seconds after the start of the run."""

    seconds: float
    whole: Phase
    phases: list[Phase]
    marks: list[Mark]
    series: Series
    recall_map: Cells | None
    transition_map: Cells | None
    timelines: list[Timeline]
    folder: str
    """Of the recording."""

    numbers: dict[str, float] = msgspec.field(default_factory=dict)
    """What only some experiments measure; of a run that was computed, all that there is."""

    def phase(self, label: str) -> Phase:
        return {phase.label: phase for phase in self.phases}[label]

    def mark(self, label: str) -> Mark:
        return {mark.label: mark for mark in self.marks}[label]


def computed(numbers: dict[str, float]) -> Measures:
    """The measures of a run without a recording: its numbers, and nothing of what would have been recorded."""
    nothing = Delivery(
        events=0, due=0, notified=0, correct=0, recall=None, precision=None, client_recall=None, client_precision=None,
        doubled=0, mean_delay=None,
    )  # fmt: skip
    whole = Phase(
        label="whole", since=0.0, until=0.0, delivery=nothing, rates={}, operations_counted=None, operations_done=None,
        clients=0.0, windows_below_one=None, window_recall_p25=None, multicast_saving=None,
    )  # fmt: skip
    bands = Bands([], [], [], [], [], [])
    series = Series(
        length=0.0, starts=[], recall=bands, precision=bands, rates={}, operations_counted=[], clients=[], mechanisms={}
    )
    return Measures(
        seconds=0.0, whole=whole, phases=[], marks=[], series=series, recall_map=None, transition_map=None,
        timelines=[], folder="", numbers=numbers,
    )  # fmt: skip
