"""What radios cost the batteries of clients, from the table ``energy``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nearcast.metrics.columns import column, names_in, numbers, ratio, reals, sums

PARTS: Final = ("sending_joules", "receiving_joules", "listening_joules")


def consumption(energy: Any) -> Any:
    """A row for each interface: ``interface, hosts``, the joules of all hosts for sending, receiving and listening, their sum, and the mean of a host."""
    import pyarrow as pa

    interface = column(energy, "interface")
    interfaces = names_in(interface)
    which, count = numbers(interface, interfaces), len(interfaces)
    hosts = np.bincount(which, minlength=count)
    parts = {part: sums(which, reals(energy, part), count) for part in PARTS}
    joules = sum(parts.values(), start=np.zeros(count))
    return pa.table(
        {
            "interface": interfaces,
            "hosts": pa.array(hosts, pa.int64()),
            **parts,
            "joules": joules,
            "joules_per_host": pa.array(ratio(joules, hosts), pa.float64(), from_pandas=True),
        }
    )
