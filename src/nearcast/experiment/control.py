"""Messages that are no events: context, coordination, subscriptions; when clients sent or received them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.metrics.columns import Floats, column, is_name, names_in, wholes
from nearcast.metrics.traffic import DOWNLOAD, UPLOAD, Flows, flows
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.records.reader import dataset, read

EVENT = "event"


@dataclass(frozen=True, eq=False)
class ControlTraffic:
    """All messages of a recording but events, and how large a mean event message is."""

    flows: Flows
    traffic: Any

    @classmethod
    def of(cls, folder: Path) -> ControlTraffic:
        import pyarrow.dataset as ds

        clients = names_in(column(dataset(folder, "clients").to_table(columns=["client"]), "client"))
        messages = dataset(folder, "messages").to_table(filter=ds.field("kind") != EVENT)
        return cls(flows(messages, tuple(clients.to_pylist())), read(folder, "traffic"))

    def windows(self, windows: Windows) -> dict[str, tuple[Floats, Floats]]:
        """Messages and bytes in each window, by direction and class; those that never occur are left out."""
        found: dict[str, tuple[Floats, Floats]] = {}
        index = windows.index(self.flows.time)
        for direction in (DOWNLOAD, UPLOAD):
            for number, name in enumerate(self.flows.classes):
                if name == EVENT:
                    continue
                kept = (self.flows.upload == (direction == UPLOAD)) & (self.flows.kind_class == number) & (index >= 0)
                messages = np.bincount(index[kept], minlength=windows.count).astype(np.float64)
                size = np.bincount(index[kept], weights=self.flows.bytes[kept], minlength=windows.count).astype(
                    np.float64
                )
                found[f"{direction} {name}"] = (messages, size)
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
