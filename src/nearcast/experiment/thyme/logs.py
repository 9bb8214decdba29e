"""Posts that people really made: logs in CSV, with a line of names, or in JSON lines (THYME 6.2 has such of Twitter).

Each has ``time`` (RFC 3339, or seconds), ``user``, ``id``, and ``text``, whose ``#words`` are the tags, or ``tags`` (a list; in CSV, words).
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nearcast.errors import InvalidInput, InvalidTime
from nearcast.experiment.thyme.posts import Post
from nearcast.model.time import MICROSECONDS, instant

_HASHTAG: Final = re.compile(r"#(\w+)")
_HOUR: Final = 3_600.0
_NEEDED: Final = ("time", "user", "id")


def read_posts(path: Path, users: int, hours: float | None = None) -> list[Post]:
    """Posts of the most active users, numbered by how active they are, over so many hours from the first on; those without tags do not count."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(_csv(lines) if path.suffix.lower() == ".csv" else _json(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"the posts in {path} cannot be read: {error}") from None
    try:
        found = [_post(number, row) for number, row in rows]
    except InvalidInput as error:
        raise InvalidInput(f"{path}, {error}") from None
    tagged = sorted((row for row in found if row[3]), key=lambda row: row[0])
    if tagged and hours is not None:
        end = tagged[0][0] + _HOUR * hours
        tagged = [row for row in tagged if row[0] < end]
    ranks = {user: rank for rank, (user, _) in enumerate(Counter(row[1] for row in tagged).most_common(users))}
    if len(ranks) < users:
        raise InvalidInput(f"{path} has posts with tags of {len(ranks)} users, fewer than {users}")
    twice = [key for key, count in Counter((row[1], row[2]) for row in tagged).items() if count > 1]
    if twice:
        raise InvalidInput(f"{path} has two posts {twice[0][1]!r} of {twice[0][0]!r}; each id must be there once")
    start = tagged[0][0]
    return [
        Post((time - start) / _HOUR, ranks[user], name, tags, content)
        for time, user, name, tags, content in tagged
        if user in ranks
    ]


def _csv(lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(lines)
    for row in reader:
        tags = row.get("tags")
        yield reader.line_num, {**row, "tags": tags.split() if tags else None}


def _json(lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InvalidInput(f"line {number} is no JSON: {error}") from None
            if not isinstance(row, dict):
                raise InvalidInput(f'line {number} is no JSON object such as {{"time": ..., "user": ...}}')
            yield number, row


def _post(number: int, row: Mapping[str, Any]) -> tuple[float, str, str, tuple[str, ...], bytes]:
    missing = [name for name in _NEEDED if row.get(name) in (None, "")]
    text, tags = row.get("text"), row.get("tags")
    if text is None and tags is None:
        missing.append("text or tags")
    if missing:
        raise InvalidInput(f"line {number} lacks {', '.join(missing)}")
    if tags is None:
        tags = _HASHTAG.findall(str(text))
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        raise InvalidInput(f"line {number}: tags are a list of texts, not {tags!r:.80}")
    lowered = tuple(sorted({tag.lower() for tag in tags}))
    return _seconds(number, row["time"]), str(row["user"]), str(row["id"]), lowered, str(text or "").encode()


def _seconds(number: int, time: object) -> float:
    try:
        seconds = float(time)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        try:
            return instant(str(time)) / MICROSECONDS
        except InvalidTime as error:
            raise InvalidInput(f"line {number}: {error}, and no number of seconds") from None
    if not math.isfinite(seconds):
        raise InvalidInput(f"line {number}: {time!r} is no time")
    return seconds
