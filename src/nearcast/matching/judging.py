"""What the filters of subscriptions say to an event: parts of the kernels."""

from __future__ import annotations

import numpy as np

from nearcast.compiled import inlined
from nearcast.matching.columns import (
    ACCEPTED,
    BEYOND,
    BLOCK_BITS,
    BLOCK_WORDS,
    END,
    FEW,
    LAST,
    NO_LOCAL,
    OPEN,
    REJECTED,
    SINGULAR,
    STAMP,
    WITHIN,
    Events,
    Filters,
    Predicates,
    Subscribers,
)
from nearcast.matching.grid import whole
from nearcast.matching.vector import peek, poke


@inlined
def judge(number: int, stamp: int, event: int, events: Events, filters: Filters, predicates: Predicates) -> int:
    """The verdict of a filter on the event; remembered for the rest of the event."""
    known = whole(peek(filters.memo, number)) - stamp
    if 0 <= known < STAMP:
        return known
    verdict = REJECTED
    if peek(filters.topic_stamp, peek(filters.topic, number)) == stamp:
        verdict = _judge_predicate(peek(filters.predicate, number), stamp, event, events, predicates)
    poke(filters.memo, number, stamp + verdict)
    return verdict


@inlined
def wanted(item: int, tag: int, event: int, events: Events, subscribers: Subscribers) -> bool:
    """Time frame and no-local."""
    if tag & SINGULAR and not subscribers.since[item] <= events.published[event] < subscribers.until[item]:
        return False
    return not (tag & NO_LOCAL and subscribers.client[item] == events.publisher[event])


@inlined
def _judge_predicate(predicate: int, stamp: int, event: int, events: Events, predicates: Predicates) -> int:
    if predicate < 0:
        return ACCEPTED
    first = peek(predicates.first, predicate)
    if first < 0 or peek(events.exotic, event):
        return OPEN
    block = first >> BLOCK_BITS
    if peek(predicates.stamp, block) != stamp:
        asked = peek(predicates.asked, 2 * block + 1) + 1 if peek(predicates.asked, 2 * block) == stamp else 1
        poke(predicates.asked, 2 * block, stamp)
        poke(predicates.asked, 2 * block + 1, asked)
        terms = peek(predicates.term_start, predicate)
        if asked <= FEW and terms >= 0:
            return _judge_terms(terms, event, events, predicates)
        _judge_block(block, event, events, predicates)
        predicates.stamp[block] = stamp
    for conjunction in range(first, first + predicates.conjunctions[predicate]):
        bit = conjunction & ((1 << BLOCK_BITS) - 1)
        if (predicates.truth[block, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1):
            return ACCEPTED
    return REJECTED


@inlined
def _judge_terms(term: int, event: int, events: Events, predicates: Predicates) -> int:
    """One predicate by itself: some conjunction all of whose terms hold.  The only branch is at the end."""
    some, all_hold = False, True
    size = events.values.shape[1]
    kind = peek(predicates.term_kind, term)
    while kind != LAST:
        value = peek(events.values, size * peek(predicates.term_column, term) + event)
        inside = (value >= peek(predicates.term_low, term)) & (value <= peek(predicates.term_high, term))
        known = value == value  # noqa: PLR0124 - not NaN
        holds = (inside ^ (kind != WITHIN)) & (known | (kind != BEYOND))
        end = kind == END
        some |= end & all_hold
        all_hold = (all_hold & holds) | end
        term += 1
        kind = peek(predicates.term_kind, term)
    return ACCEPTED if some | all_hold else REJECTED


@inlined
def _judge_block(block: int, event: int, events: Events, predicates: Predicates) -> None:
    """All conjunctions of a block at once: one row of bits per dimension, all of them must agree."""
    truth = predicates.truth
    for word in range(BLOCK_WORDS):
        truth[block, word] = ~np.uint64(0)
    for d in range(predicates.dimension_span[block, 0], predicates.dimension_span[block, 1]):
        value = events.values[predicates.dimension[d], event]
        row = predicates.row_start[d]  # the row of a missing value
        if value == value:  # noqa: PLR0124 - not NaN
            low = predicates.constant_start[d]
            base = low
            left = predicates.constant_count[d]
            while left > 0:  # the first constant that is not below the value, without branches to guess
                half = left >> 1
                below = predicates.constants[low + half] < value
                low = low + half + 1 if below else low
                left = left - half - 1 if below else half
            index = low - base
            equal = index < predicates.constant_count[d] and predicates.constants[low] == value
            row += 1 + 2 * index + (1 if equal else 0)
        for word in range(BLOCK_WORDS):
            truth[block, word] &= predicates.rows[row, word]
