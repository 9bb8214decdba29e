"""What every filter scheme has: parameters, from which its two halves are made for a territory."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from nearcast.filtering.attraction import Zones
from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.channels import UnknownChannels
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.tessellation import GeoBox
from nearcast.transition.registry import DURATION, LENGTH

__all__ = ["DURATION", "LENGTH", "Scheme", "Territory"]


@dataclass(frozen=True, slots=True)
class Territory:
    """The ground that schemes cut into channels; both halves know it."""

    box: GeoBox
    zones: Zones
    unknown_channels: UnknownChannels = "place"


class Scheme(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a scheme: its fields, each a truth value, a number or one of a few words.

    Whatever names a scheme - a scenario, a broker's settings, a plan, a client - reads its parameters by these declarations:
    type, default and, in a ``msgspec.Meta``, bounds, what it means (``description``) and what it measures (``extra``).
    """

    needs_points: ClassVar[bool] = False
    """Whether it is of use only where there are attraction points."""

    @abstractmethod
    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf: ...

    @abstractmethod
    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf: ...
