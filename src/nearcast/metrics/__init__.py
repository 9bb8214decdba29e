"""The one definition of each metric, over the record tables as Arrow tables (BYPASS.KOM 6.1.4; docs/metrics.md).

``pairs`` joins events and notifications; recall, precision, loss and delay are counted from it.  ``run_metrics`` measures a whole
recording.  pyarrow is loaded when it is needed.
"""

from nearcast.metrics.delay import DelayTotals, delay_per_client, delay_per_event, delay_totals, delays
from nearcast.metrics.delivery import (
    ApplicationTotals,
    DeliveryTotals,
    application_totals,
    per_client,
    per_client_and_window,
    per_event,
    totals,
)
from nearcast.metrics.distribution import BANDS, BOX, BoxPlot, GrandMean, box_plot, grand_mean, grouped_percentiles
from nearcast.metrics.energy import consumption
from nearcast.metrics.fairness import jain_index
from nearcast.metrics.gaps import AlignedRecall, RecallGap, aligned_recall, recall_gap
from nearcast.metrics.gateways import selection_fairness, utilisation
from nearcast.metrics.maps import (
    TRANSITION_CELL,
    VISIT_CELL,
    Grid,
    Tracks,
    cell_sums,
    recall_by_place_of_client,
    recall_by_place_of_event,
    visits,
)
from nearcast.metrics.matching import increases, match_operations
from nearcast.metrics.pairs import Pairs, pairs
from nearcast.metrics.spread import Executions, Spread, executions, spread, spreads
from nearcast.metrics.summary import RunMetrics, TrafficTotal, run_metrics
from nearcast.metrics.traffic import KIND_CLASSES, Flows, carried, flows
from nearcast.metrics.windows import Windows, bands, bands_of_matrix

__all__ = [
    "BANDS",
    "BOX",
    "KIND_CLASSES",
    "TRANSITION_CELL",
    "VISIT_CELL",
    "AlignedRecall",
    "ApplicationTotals",
    "BoxPlot",
    "DelayTotals",
    "DeliveryTotals",
    "Executions",
    "Flows",
    "GrandMean",
    "Grid",
    "Pairs",
    "RecallGap",
    "RunMetrics",
    "Spread",
    "Tracks",
    "TrafficTotal",
    "Windows",
    "aligned_recall",
    "application_totals",
    "bands",
    "bands_of_matrix",
    "box_plot",
    "carried",
    "cell_sums",
    "consumption",
    "delay_per_client",
    "delay_per_event",
    "delay_totals",
    "delays",
    "executions",
    "flows",
    "grand_mean",
    "grouped_percentiles",
    "increases",
    "jain_index",
    "match_operations",
    "pairs",
    "per_client",
    "per_client_and_window",
    "per_event",
    "recall_by_place_of_client",
    "recall_by_place_of_event",
    "recall_gap",
    "run_metrics",
    "selection_fairness",
    "spread",
    "spreads",
    "totals",
    "utilisation",
    "visits",
]
