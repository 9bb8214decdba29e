"""One door to traces of all formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nearcast.errors import InvalidTrace
from nearcast.runtime.simulation.mobility.traces.comma_separated import read_csv
from nearcast.runtime.simulation.mobility.traces.gpx import read_gpx
from nearcast.runtime.simulation.mobility.traces.moving_features import read_moving_features
from nearcast.runtime.simulation.mobility.traces.track import Traces

FORMATS: Final[Mapping[str, Callable[[Path], Traces]]] = MappingProxyType(
    {
        ".csv": read_csv,
        ".gpx": read_gpx,
        ".json": read_moving_features,
        ".mfjson": read_moving_features,
        ".geojson": read_moving_features,
    }
)


def read_traces(path: Path) -> Traces:
    """The traces of a file, in the format that its name ends with."""
    read = FORMATS.get(path.suffix.lower())
    if read is None:
        raise InvalidTrace(f"{path} is of no known format; the name of a trace ends with {', '.join(FORMATS)}")
    return read(path)
