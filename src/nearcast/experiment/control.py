"""Messages that clients sent or received, and when: of the cellular network all but events, of the radio events as well."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from nearcast.metrics.columns import Floats, column, is_name, names_in, sums, wholes
from nearcast.metrics.traffic import DOWNLOAD, UPLOAD, Flows, flows
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.records.reader import dataset, read

EVENT: Final = "event"
CELLULAR: Final = "cellular"
AD_HOC: Final = "ad hoc "
"""What the names of traffic by radio begin with."""


@dataclass(frozen=True, eq=False)
class ControlTraffic:
    """All messages of a recording but events by way of the broker, and how large such a message is on the average."""

    flows: Flows
    traffic: Any

    @classmethod
    def of(cls, folder: Path) -> ControlTraffic:
        import pyarrow.dataset as ds

        clients = names_in(column(dataset(folder, "clients").to_table(columns=["client"]), "client"))
        messages = dataset(folder, "messages").to_table(filter=ds.field("kind") != EVENT)
        return cls(flows(messages, tuple(clients.to_pylist())), read(folder, "traffic"))

    def windows(self, windows: Windows) -> dict[str, tuple[Floats, Floats]]:
        """Messages and bytes in each window, by direction and class; what went by radio has names of its own (``AD_HOC``)."""
        found: dict[str, tuple[Floats, Floats]] = {}
        index = windows.index(self.flows.time)
        for interface, carrier in enumerate(self.flows.interfaces):
            here = np.flatnonzero((index >= 0) & (self.flows.interface == interface))
            for upload, direction in enumerate((DOWNLOAD, UPLOAD)):
                for number, name in enumerate(self.flows.classes):
                    if carrier == CELLULAR and name == EVENT:
                        continue
                    kept = here[(self.flows.upload[here] == upload) & (self.flows.kind_class[here] == number)]
                    if carrier != CELLULAR and not len(kept):
                        continue
                    messages = sums(index[kept], self.flows.copies[kept], windows.count)
                    size = sums(index[kept], self.flows.bytes[kept], windows.count)
                    found[f"{'' if carrier == CELLULAR else AD_HOC}{direction} {name}"] = (messages, size)
        return found

    def messages(self, since: Instant, seconds: int) -> dict[str, list[int]]:
        """How many in each second from that instant on, by direction and class."""
        windows = Windows(since, since + seconds * MICROSECONDS, MICROSECONDS)
        return {name: messages.astype(np.int64).tolist() for name, (messages, _) in self.windows(windows).items()}

    def event_size(self, direction: str) -> float:
        """Mean bytes of an event message that clients ``sent`` or ``received``, over the whole run."""
        kept = self.traffic.filter(
            is_name(column(self.traffic, "kind"), EVENT)
            & is_name(column(self.traffic, "direction"), direction)
            & ~is_name(column(self.traffic, "host"), "broker")
        )
        messages = int(wholes(kept, "messages").sum())
        return int(wholes(kept, "bytes").sum()) / messages if messages else 0.0
