"""Traces as GPX 1.0 or 1.1: each ``trk`` is a track; between two of its ``trkseg`` the receiver was off.

Read as a stream by the parser that Python ships.  A document type, which GPX has no use for, is refused: it could make a
small file large (entities) or fetch another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.parsers import expat

import numpy as np

from nearcast.errors import InvalidTrace
from nearcast.runtime.simulation.mobility.traces.track import Traces, Track, checked_track, distinct, instants


def read_gpx(path: Path) -> Traces:
    reader = _Reader(path)
    try:
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except OSError as error:
        raise InvalidTrace(f"{path} cannot be read: {error.strerror}") from None
    except expat.ExpatError as error:
        raise InvalidTrace(
            f"{path}, line {error.lineno}: {expat.errors.messages[error.code]}; this is no well-formed XML"
        ) from None
    if reader.root != "gpx":
        raise InvalidTrace(f"{path} is XML, but of {reader.root}, not of gpx")
    if not any(found.times for found in reader.found):
        raise InvalidTrace(
            f"{path} has no track with points; routes (rte) and way points (wpt) have no times to replay"
        )
    return Traces(tuple(reader.tracks()))


class _Found:
    """The points of one track."""

    def __init__(self) -> None:
        self.name = ""
        self.times: list[str] = []
        self.lats: list[float] = []
        self.lons: list[float] = []
        self.lines: list[int] = []
        self.segments: list[int] = []
        """The number of the first point of each segment."""


class _Reader:
    def __init__(self, path: Path) -> None:
        self.root = ""
        self.found: Final[list[_Found]] = []
        self.parser: Final = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse
        self._path: Final = path
        self._above: Final[list[str]] = []
        self._text = ""
        self._timed = False

    def tracks(self) -> list[Track]:
        with_points = [found for found in self.found if found.times]
        names = distinct([found.name or f"track {number}" for number, found in enumerate(with_points, 1)])
        return [self._track(name, found) for name, found in zip(names, with_points, strict=True)]

    def _track(self, name: str, found: _Found) -> Track:
        gaps = np.zeros(len(found.times), np.bool_)
        gaps[[first for first in found.segments if first < len(gaps)]] = True

        def complain(number: int, what: str) -> InvalidTrace:
            return self._complaint(what, found.lines[number])

        times = instants(found.times, complain)
        return checked_track(name, times, np.array(found.lats), np.array(found.lons), gaps[1:], complain)

    def _start(self, qualified: str, attributes: dict[str, str]) -> None:
        name = qualified.rpartition(" ")[2]
        self.root = self.root or name
        self._above.append(name)
        if name in {"time", "name"}:
            self._text = ""
            self.parser.CharacterDataHandler = self._read
        elif name == "trk":
            self.found.append(_Found())
        elif name == "trkseg" and self.found:
            self.found[-1].segments.append(len(self.found[-1].times))
        elif name == "trkpt" and self.found:
            self._point(self.found[-1], attributes)

    def _point(self, found: _Found, attributes: dict[str, str]) -> None:
        self._timed = False
        for name, values in (("lat", found.lats), ("lon", found.lons)):
            try:
                values.append(float(attributes[name]))
            except KeyError:
                raise self._complaint(f"a trkpt has no {name}; give lat and lon in degrees") from None
            except ValueError:
                raise self._complaint(f"{name} {attributes[name]!r} is not a number of degrees") from None
        found.lines.append(self.parser.CurrentLineNumber)

    def _read(self, text: str) -> None:
        self._text += text

    def _end(self, _: str) -> None:
        # Whitespace between the elements is most of the text of a file.
        self.parser.CharacterDataHandler = None
        name = self._above.pop()
        above = self._above[-1] if self._above else ""
        if name == "time" and above == "trkpt":
            if self._timed:
                raise self._complaint("a trkpt has two times; give one")
            self.found[-1].times.append(self._text.strip())
            self._timed = True
        elif name == "name" and above == "trk":
            self.found[-1].name = self._text.strip()
        elif name == "trkpt" and not self._timed:
            raise self._complaint("a trkpt has no time; only recorded tracks can be replayed")

    def _refuse(self, *_: object) -> None:
        raise self._complaint("a document type (DOCTYPE) is refused; GPX has none, remove it")

    def _complaint(self, what: str, line: int | None = None) -> InvalidTrace:
        return InvalidTrace(f"{self._path}, line {line or self.parser.CurrentLineNumber}: {what}")
