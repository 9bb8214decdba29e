"""What may be set on a reader or writer of ``nearcast-kafka``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.errors import InvalidSettings, SetupError
from nearcast.pipeline.limits import MOST_ROWS

SERVERS: Final = "bootstrap.servers"
_PREFIX: Final = "kafka."
"""As in Spark's own connector: what comes after it goes to the client of Kafka as it is."""

_KNOWN: Final = ("topic", "startingoffset", "maxrowspertrigger")
_SPARKS_OWN: Final = frozenset({"checkpointlocation", "path"})
"""Options that Spark reads and hands on all the same."""


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    client: dict[str, str] = field(repr=False)  # there may be a password in it
    topic: str
    """Of a writer: of all messages that say no other; marks are kept with it."""

    latest: bool
    """Begin with what comes, not with what is there."""

    most_rows: int
    """Of one micro-batch."""


def checked(options: Mapping[str, str]) -> KafkaOptions:
    """The options, or ``InvalidSettings``; ``SetupError`` if there is no client of Kafka."""
    try:
        import confluent_kafka  # noqa: F401 - so that it is missed here, and not on an executor
    except ImportError:
        raise SetupError("Kafka needs the package that speaks to it: pip install confluent-kafka") from None
    given = {name.lower(): value for name, value in options.items()}
    client = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    unknown = sorted(name for name in given if not name.startswith(_PREFIX) and name not in {*_KNOWN, *_SPARKS_OWN})
    if unknown:
        raise InvalidSettings(f"unknown options {', '.join(unknown)}; there are {', '.join(_KNOWN)}, {_PREFIX}*")
    if not client.get(SERVERS):
        raise InvalidSettings(f'where is Kafka? Say .option("{_PREFIX}{SERVERS}", "HOST:9092")')
    if not given.get("topic"):
        raise InvalidSettings('which topic? Say .option("topic", NAME)')
    start = given.get("startingoffset", "earliest")
    if start not in {"earliest", "latest"}:
        raise InvalidSettings(f"option startingOffset is {start!r}; expected earliest or latest")
    most = given.get("maxrowspertrigger")
    if most is not None and (not most.isdecimal() or int(most) < 1):
        raise InvalidSettings(f"option maxRowsPerTrigger is {most!r}; expected a whole number from 1 on")
    return KafkaOptions(client, given["topic"], start == "latest", MOST_ROWS if most is None else int(most))
