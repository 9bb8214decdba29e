"""Mechanisms that keep a crowd's things, by name: those of the house, and those that other packages bring.

A package brings one by an entry point of the group ``nearcast.crowdstore``: its name is the mechanism's, and it leads to a class of
parameters (``storage.Manner``).
"""

from __future__ import annotations

from typing import Final

from nearcast.crowdstore.data_centric.manner import DataCentric
from nearcast.crowdstore.publish_local.mechanism import PublishLocal
from nearcast.crowdstore.storage import Manner
from nearcast.errors import InvalidPlan
from nearcast.transition.registry import Entry, Registry

_OURS: Final[dict[str, Entry[Manner]]] = {"PL/SG": Entry(PublishLocal), "DCS": Entry(DataCentric)}

MECHANISMS: Final = Registry("crowd store", "nearcast.crowdstore", Manner, _OURS, InvalidPlan)
manner_of: Final = MECHANISMS.parameters_of
