"""The broker's statistics as Prometheus reads them: nothing is counted twice, each number comes from its owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from nearcast.broker.core import Broker
    from nearcast.broker.federation.statistics import FederationStatistics

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class BrokerCollector(Collector):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        now = self._broker.statistics()
        gauges: Numbers = {
            "connections": ("Open connections.", now.connections),
            "sessions": ("Sessions, with or without a connection.", now.sessions.sessions),
            "subscriptions": ("Subscriptions of all sessions.", now.sessions.subscriptions),
            "queued_messages": ("Messages that wait for their receivers.", now.sessions.queued),
            "retained_messages": ("Retained messages.", now.retained),
            "located_clients": ("Clients whose position is known.", now.presence.located),
            "journal_writable": (
                "1 if what is acknowledged reaches the disk.",
                float(now.journal.problem is None),
            ),
            "journal_head": ("Offset that the next record will get.", now.journal.head),
            "lake_writable": ("1 if the last export to the lake succeeded.", float(now.archive.problem is None)),
            "lake_exported": ("Offset below which everything is in the lake.", now.archive.exported),
        }
        counters: Numbers = {
            "received_bytes": ("Bytes from clients.", now.bytes_in),
            "sent_bytes": ("Bytes to clients.", now.bytes_out),
            "received_packets": ("Packets from clients.", now.packets_in),
            "published_messages": ("Messages published.", now.publishing.published),
            "delivered_messages": ("Copies for receivers.", now.publishing.delivered),
            "repeated_publishes": ("Events that were published again under their id.", now.publishing.repeated),
            "dropped_messages": ("Copies that a receiver did not get.", now.sessions.dropped),
            "position_reports": ("Positions reported.", now.presence.reports),
            "matched_events": ("Events that the matcher was asked for.", now.routing.matched),
            "transitions": ("Exchanges of filter schemes.", self._broker.scheming.live.status().transitions),
        }
        if now.federation is not None:
            gauges |= _federation_gauges(now.federation)
            counters |= _federation_counters(now.federation)
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"nearcast_{name}", text, value)
        for name, (text, value) in counters.items():
            yield CounterMetricFamily(f"nearcast_{name}", text, value)


Numbers = dict[str, tuple[str, float]]


def _federation_gauges(now: FederationStatistics) -> Numbers:
    return {
        "federation_brokers": ("Other brokers in reach.", sum(now.brokers.values())),
        "federation_brokers_missing": (
            "Other brokers that were heard of, and cannot be reached.",
            sum(not reachable for reachable in now.brokers.values()),
        ),
        "federation_links": ("Mesh links.", len(now.links)),
        "federation_kept_parcels": ("Parcels that are kept until a neighbour has stored them.", now.custody.parcels),
        "federation_kept_bytes": ("Bytes of these.", now.custody.bytes),
        "federation_forwarding_clients": (
            "Clients that have gone to another broker, and whose messages still follow.",
            now.roaming.forwarding,
        ),
    }


def _federation_counters(now: FederationStatistics) -> Numbers:
    return {
        "federation_sent_events": ("Events that concerned another broker.", now.events.sent),
        "federation_arrived_events": ("Events from other brokers.", now.events.arrived),
        "federation_repeated_events": ("Events that had come before, and were recognised.", now.events.repeated),
        "federation_expired_parcels": ("Parcels given up: their broker did not return.", now.custody.expired),
        "federation_relayed_messages": ("Messages that followed a client to another broker.", now.roaming.relayed),
        "federation_trees": ("Trees that there were.", now.topology.epoch),
        "federation_refused_links": ("Connections of brokers that were refused.", now.link.refused),
    }


def metrics_text(broker: Broker) -> tuple[bytes, str]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BrokerCollector(broker))
    return generate_latest(registry), MEDIA_TYPE
