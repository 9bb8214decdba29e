"""Distinct filters (topic filter, predicate, class of radius), numbered, and the subscriptions that hang on each."""

from __future__ import annotations

from typing import Final

import numpy as np

from nearcast.matching.columns import CLOSED, STAMP, Filters
from nearcast.matching.grid import Int32s
from nearcast.matching.growing import grown
from nearcast.matching.predicates import PredicateIndex
from nearcast.model.predicate import Predicate
from nearcast.model.topic import TopicTrie, checked_topic

NONE: Final = -1
REMEMBERED_TOPICS: Final = 4096
LAST_STAMP: Final = 2**31 - 1


class FilterTable:
    """Equal filters are one filter; it knows how many subscriptions hold it."""

    def __init__(self) -> None:
        self.predicates = PredicateIndex()
        self._trie = TopicTrie()
        self._topic_numbers: dict[str, int] = {}
        self._topic_holders: list[int] = [0]
        self._topic_texts: list[str] = [""]  # number 0 is CLOSED
        self._free_topics: list[int] = []
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._holders: list[int] = []
        self._free: list[int] = []
        self._answers: dict[str, Int32s] = {}
        self.version = 0
        """Changes whenever a topic filter comes or goes."""
        self._stamp = STAMP
        self.arrays = Filters(
            topic=np.full(16, NONE, np.int32),
            predicate=np.full(16, NONE, np.int32),
            units=np.full(16, NONE, np.int32),
            memo=np.full(16, NONE, np.int32),
            gate=np.full(16, CLOSED, np.int32),
            first=np.full(16, NONE, np.int32),
            next_in_topic=np.full(16, NONE, np.int32),
            first_in_topic=np.full((16, 2), NONE, np.int32),
            topic_stamp=np.full(16, NONE, np.int32),
        )

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def topic_filters(self) -> int:
        return len(self._topic_numbers)

    def add(self, topic_filter: str, where: Predicate | None, units: int = NONE, holders: int = 1) -> int:
        """The number of the filter, which has so many holders more; ``units`` is NONE without an area."""
        predicate = NONE if where is None else self.predicates.add(where)
        topic = self._topic_numbers.get(topic_filter)
        number = None if topic is None else self._numbers.get((topic, predicate, units))
        if number is not None:
            if predicate != NONE:
                self.predicates.remove(predicate)  # this filter holds it already
            self._holders[number] += holders
            return number
        if topic is None:
            topic = self._new_topic(topic_filter)
        number = self._free.pop() if self._free else len(self._holders)
        if number == len(self._holders):
            self._holders.append(0)
            self._make_room(number + 1)
        self._holders[number] = holders
        self._topic_holders[topic] += 1
        self._numbers[topic, predicate, units] = number
        arrays = self.arrays
        arrays.topic[number], arrays.predicate[number], arrays.units[number] = topic, predicate, units
        arrays.memo[number] = arrays.first[number] = NONE
        chain = int(units != NONE)
        arrays.next_in_topic[number] = arrays.first_in_topic[topic, chain]
        arrays.first_in_topic[topic, chain] = number
        arrays.gate[number] = topic if predicate == NONE else CLOSED
        return number

    def remove(self, number: int) -> None:
        """One holder less; without any, the filter is gone."""
        self._holders[number] -= 1
        if self._holders[number]:
            return
        arrays = self.arrays
        topic, predicate, units = int(arrays.topic[number]), int(arrays.predicate[number]), int(arrays.units[number])
        del self._numbers[topic, predicate, units]
        self._unchain(topic, int(units != NONE), number)
        if predicate != NONE:
            self.predicates.remove(predicate)
        self._free.append(number)
        self._topic_holders[topic] -= 1
        if not self._topic_holders[topic]:
            text = self._topic_texts[topic]
            self._trie.remove(text, topic)
            del self._topic_numbers[text]
            self._free_topics.append(topic)
            self._forget_answers()

    def topics_matching(self, topic: str) -> Int32s:
        """Numbers of the topic filters that match; remembered for recent topics."""
        answer = self._answers.get(topic)
        if answer is None:
            if len(self._answers) >= REMEMBERED_TOPICS:
                self._answers.clear()
            answer = np.array(self._trie.match(checked_topic(topic)), np.int32)
            self._answers[topic] = answer
        return answer

    def stamps(self, events: int) -> int:
        """The first of as many unused stamps; when they run out, everything that was remembered is forgotten."""
        if self._stamp + events * STAMP > LAST_STAMP:
            self.arrays.memo.fill(NONE)
            self.arrays.topic_stamp.fill(NONE)
            self.predicates.forget_stamps()
            self._stamp = STAMP
        first = self._stamp
        self._stamp += events * STAMP
        return first

    def _new_topic(self, topic_filter: str) -> int:
        topic = self._free_topics.pop() if self._free_topics else len(self._topic_texts)
        if topic == len(self._topic_texts):
            self._topic_texts.append(topic_filter)
            self._topic_holders.append(0)
            arrays = self.arrays
            self.arrays = arrays._replace(
                first_in_topic=grown(arrays.first_in_topic, topic + 1, NONE),
                topic_stamp=grown(arrays.topic_stamp, topic + 1, NONE),
            )
        self._topic_texts[topic] = topic_filter
        self._topic_numbers[topic_filter] = topic
        self._trie.add(topic_filter, topic)
        self._forget_answers()
        return topic

    def _forget_answers(self) -> None:
        self._answers.clear()
        self.version += 1

    def _make_room(self, size: int) -> None:
        a = self.arrays
        self.arrays = a._replace(
            topic=grown(a.topic, size, NONE),
            predicate=grown(a.predicate, size, NONE),
            units=grown(a.units, size, NONE),
            memo=grown(a.memo, size, NONE),
            gate=grown(a.gate, size, CLOSED),
            first=grown(a.first, size, NONE),
            next_in_topic=grown(a.next_in_topic, size, NONE),
        )

    def _unchain(self, topic: int, chain: int, number: int) -> None:
        arrays = self.arrays
        if arrays.first_in_topic[topic, chain] == number:
            arrays.first_in_topic[topic, chain] = arrays.next_in_topic[number]
            return
        before = int(arrays.first_in_topic[topic, chain])
        while arrays.next_in_topic[before] != number:
            before = int(arrays.next_in_topic[before])
        arrays.next_in_topic[before] = arrays.next_in_topic[number]
