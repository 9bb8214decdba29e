"""All metrics of ``nearcast.metrics`` as functions of data frames: column expressions only, from a laptop to a cluster.

The definitions are those of ``nearcast.metrics`` (docs/metrics.md), and tested against them.  Frames are record tables as Spark
reads them; what has no value is null.  A metric that is one number comes as a frame with one row.
"""

from nearcast.pipeline.metrics.delay import delay_per_client, delay_per_event, delay_totals, delays
from nearcast.pipeline.metrics.delivery import (
    application_totals,
    measured,
    per_client,
    per_client_and_window,
    per_event,
    totals,
)
from nearcast.pipeline.metrics.distribution import box_plot, grand_mean
from nearcast.pipeline.metrics.fairness import jain, jain_index
from nearcast.pipeline.metrics.gaps import aligned_recall, recall_gap
from nearcast.pipeline.metrics.maps import (
    cell_sums,
    located,
    recall_by_place_of_client,
    recall_by_place_of_event,
    visits,
)
from nearcast.pipeline.metrics.matching import increases, match_operations
from nearcast.pipeline.metrics.pairs import chosen, pairs, strays
from nearcast.pipeline.metrics.spread import executions, spread, spreads
from nearcast.pipeline.metrics.summary import run_metrics
from nearcast.pipeline.metrics.traffic import carried, flows, rates, total_rates, traffic_totals
from nearcast.pipeline.metrics.windows import bands, window_of

__all__ = [
    "aligned_recall",
    "application_totals",
    "bands",
    "box_plot",
    "carried",
    "cell_sums",
    "chosen",
    "delay_per_client",
    "delay_per_event",
    "delay_totals",
    "delays",
    "executions",
    "flows",
    "grand_mean",
    "increases",
    "jain",
    "jain_index",
    "located",
    "match_operations",
    "measured",
    "pairs",
    "per_client",
    "per_client_and_window",
    "per_event",
    "rates",
    "recall_by_place_of_client",
    "recall_by_place_of_event",
    "recall_gap",
    "run_metrics",
    "spread",
    "spreads",
    "strays",
    "total_rates",
    "totals",
    "traffic_totals",
    "visits",
    "window_of",
]
