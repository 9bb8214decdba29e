"""The broker's statistics as Prometheus reads them: nothing is counted twice, each number comes from its owner."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from nearcast.broker.core import Broker
    from nearcast.broker.federation.statistics import FederationStatistics
    from nearcast.runtime.durations import DurationStatistics

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
            "journal_bytes": ("Bytes of the records that the journal keeps.", now.journal.bytes),
            "journal_waiting_bytes": ("Bytes that wait for the disk.", now.journal.waiting_bytes),
            "journal_head": ("Offset that the next record will get.", now.journal.head),
            "lake_writable": ("1 if the last export to the lake succeeded.", float(now.archive.problem is None)),
            "audit_whole": (
                "0 if the broker has found that somebody changed its audit log.",
                float(now.audit.broken is None),
            ),
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
            "journal_failed_writes": (
                "Writes that did not reach the disk, and were refused.",
                now.journal.failed_writes,
            ),
            "audit_lost_entries": ("Entries that the audit log had no room for.", now.audit.lost),
            "transitions": ("Exchanges of filter schemes.", self._broker.scheming.live.status().transitions),
        }
        if now.federation is not None:
            gauges |= _federation_gauges(now.federation)
            counters |= _federation_counters(now.federation)
        if now.tracing is not None:
            counters["traced_messages"] = "Messages of which a trace was recorded.", now.tracing.traced
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"nearcast_{name}", text, value)
        for name, (text, value) in counters.items():
            yield CounterMetricFamily(f"nearcast_{name}", text, value)
        yield _refusals(now.refusals)
        yield _durations(
            "delivery_duration_seconds",
            "From publication until a copy is handed to its connection or queue; plain messages of quality 0 are not timed.",
            now.publishing.delivery_time,
        )
        yield _durations(
            "match_duration_seconds",
            "Finding the receivers of an event that the matcher is asked for.",
            now.routing.match_time,
        )
        yield _durations(
            "journal_commit_duration_seconds", "Committing a group of writes to disk.", now.journal.commit_time
        )
        yield _durations("loop_lag_seconds", "How late the event loop came to its turn, once a second.", now.loop_lag)
        info = GaugeMetricFamily("nearcast_build_info", "1, with the version that runs.", labels=("version",))
        info.add_metric((version("nearcast"),), 1.0)
        yield info


def _refusals(refusals: dict[str, dict[str, int]]) -> Metric:
    family = CounterMetricFamily(
        "nearcast_refusals", "Connections and requests that were refused.", labels=("listener", "reason")
    )
    for listener, reasons in refusals.items():
        for reason, count in reasons.items():
            family.add_metric((listener, reason), count)
    return family


def _durations(name: str, text: str, durations: DurationStatistics) -> Metric:
    buckets, below = [], 0
    for bound, count in zip((*map(floatToGoString, durations.bounds), "+Inf"), durations.counts, strict=True):
        below += count
        buckets.append((bound, float(below)))
    return HistogramMetricFamily(f"nearcast_{name}", text, buckets, durations.total)


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
    ProcessCollector(registry=registry)  # memory, processor time, open files, since when
    return generate_latest(registry), MEDIA_TYPE
