"""The sender's side: reach and addressing of events, applied to those who are interested."""

from __future__ import annotations

import numpy as np

from nearcast.matching.areas import Bools, covered
from nearcast.matching.contexts import ContextTable
from nearcast.matching.events import EventBatch
from nearcast.matching.matches import Pairs
from nearcast.matching.subscribers import SubscriberTable


def relevant(batch: EventBatch, pairs: Pairs, subscribers: SubscriberTable, contexts: ContextTable) -> Bools:
    """For each pair whether the event is relevant to its client."""
    keep = np.ones(len(pairs.owners), np.bool_)
    lat, lon = subscribers.columns.lat, subscribers.columns.lon
    for event in sorted(batch.reaches.keys() | batch.addressing.keys()):
        span = slice(int(pairs.offsets[event]), int(pairs.offsets[event + 1]))
        clients, inverse = np.unique(pairs.owners[span], return_inverse=True)
        if not len(clients):
            continue
        good = np.ones(len(clients), np.bool_)
        reach = batch.reaches.get(event)
        if reach is not None:
            good = covered(reach, lat[clients], lon[clients])
        conjuncts = batch.addressing.get(event)
        if conjuncts is not None and good.any():
            those = np.flatnonzero(good)
            there = clients[those]
            good[those] = contexts.addressed(conjuncts, there, lat[there], lon[there])
        keep[span] = good[inverse]
    return keep
