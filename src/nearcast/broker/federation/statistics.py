"""What a broker tells of its federation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nearcast.broker.federation.custody import CustodyStatistics
from nearcast.broker.federation.events import FederatedEventsStatistics
from nearcast.broker.federation.replicas import ReplicasStatistics
from nearcast.broker.federation.roaming import RoamingStatistics
from nearcast.overlay.routing.router import RouterStatistics
from nearcast.overlay.topology.topology import TopologyStatistics
from nearcast.runtime.live.tcp import TcpStatistics
from nearcast.runtime.ports import Address


@dataclass(frozen=True, slots=True)
class FederationStatistics:
    name: str
    address: Address
    links: tuple[Address, ...]
    neighbours: tuple[Address, ...]
    """In the tree."""

    edges: tuple[tuple[Address, Address], ...]
    """Of the tree."""

    brokers: Mapping[str, bool]
    """All others that were ever heard of, and whether they can be reached."""

    topics: Mapping[str, tuple[str, ...]]
    """What is wanted of ordinary events, by broker."""

    notices: int
    custody: CustodyStatistics
    events: FederatedEventsStatistics
    roaming: RoamingStatistics
    replicas: ReplicasStatistics
    topology: TopologyStatistics
    routing: RouterStatistics
    link: TcpStatistics
