"""A client that was let in, and what it may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.broker.access.grants import Grant
from nearcast.errors import Denied
from nearcast.model.area import Area
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.mqtt.names import RESERVED, SHARE, ReservedTopic

REMEMBERED_TOPICS: Final = 256
"""Topics of which a client's right is remembered; then it starts afresh, so that nobody fills the memory by making topics up."""

_ANSWERS: Final = frozenset({ReservedTopic.PROBLEMS.topic, ReservedTopic.SCHEME.topic})
_PRESENCE: Final = ReservedTopic.PRESENCE.topic
_CLIENT_ID_NOT_VALID: Final = 0x85


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection."""

    address: str
    port: int = 0
    tls: bool = False
    certificate_name: str | None = None
    """The common name of the certificate that it has shown and that was verified."""

    foreign_page: bool = False
    """It is a page of some site in a browser, which speaks to whatever its author likes: that it comes from this machine says nothing for it."""


class _Rights(dict[str, bool]):
    """What is allowed by the topic: judged when it is asked for, and remembered."""

    __slots__ = ("_grants", "_judge")

    def __init__(self, judge: Callable[[tuple[Grant, ...], str], bool], grants: tuple[Grant, ...]) -> None:
        self._judge: Final = judge
        self._grants: Final = grants

    def __missing__(self, topic: str) -> bool:
        if len(self) >= REMEMBERED_TOPICS:
            self.clear()
        allowed = self[topic] = self._judge(self._grants, topic)
        return allowed


def _may_publish(grants: tuple[Grant, ...], topic: str) -> bool:
    return topic.startswith(RESERVED) or any(grant.may_publish(topic) for grant in grants)


def _may_publish_plain(grants: tuple[Grant, ...], topic: str) -> bool:
    return any(grant.may_publish(topic) and grant.allows_plain for grant in grants)


def _may_receive(grants: tuple[Grant, ...], topic: str) -> bool:
    return any(grant.may_receive(topic) for grant in grants)


class Principal:
    """Who a client is (``user``; ``None``: anonymous) and what follows from it.

    ``grants`` is ``None`` where there are no rules: then everything is allowed, but that ``trusted`` decides on plans.
    Topics below ``$nearcast/`` speak to the broker about the client itself and are open to everybody; what is asked for on them
    is checked where it is carried out: an announcement by ``may_publish`` of its topic, a plan by ``check_plan``.
    """

    __slots__ = (
        "_grants",
        "_plainly",
        "_publishable",
        "_receivable",
        "client_id",
        "groups",
        "metered",
        "peer",
        "stamp",
        "trusted",
        "until",
        "user",
    )

    def __init__(
        self,
        user: str | None,
        client_id: str,
        peer: Peer,
        grants: tuple[Grant, ...] | None,
        *,
        trusted: bool = True,
        until: Instant | None = None,
        groups: frozenset[str] = frozenset(),
        stamp: str | None = None,
    ) -> None:
        self.user: Final = user
        self.client_id: Final = client_id
        self.peer: Final = peer
        self.until: Final = until
        """Then the token by which it was let in has expired, and it has to show another one."""

        self.groups: Final = groups
        """Those that its token puts it into."""

        self._grants: Final = grants
        self.trusted: Final = trusted
        self.stamp: Final = stamp
        """What changes with the password that it has shown; none: it has shown none."""

        self.metered: Final = any(grant.people_per_hour is not None for grant in grants or ())
        """Whether it is counted how many people its messages go to."""

        self._publishable: Final = _Rights(_may_publish, grants or ())
        self._plainly: Final = _Rights(_may_publish_plain, grants or ())
        self._receivable: Final = _Rights(_may_receive, grants or ())

    def __str__(self) -> str:
        return f"user {self.user!r}" if self.user is not None else "an anonymous client"

    @property
    def is_absent(self) -> bool:
        """Whether it has not come since the broker started."""
        return not self.peer.address

    @property
    def unrestricted(self) -> bool:
        """Whether there are no rules."""
        return self._grants is None

    def may_publish(self, topic: str) -> bool:
        """Whether it may publish to that topic at all; ``check_event`` looks at place, reach and addressing."""
        return self._grants is None or self._publishable[topic]

    def may_publish_plain(self, topic: str) -> bool:
        """Whether it may publish there without place, reach and addressing: all that there is to check of a plain message."""
        return self._grants is None or self._plainly[topic]

    def may_receive(self, topic: str) -> bool:
        """Whether it may get events of that topic: for those that reach it by its context, without a subscription."""
        return self._grants is None or self._receivable[topic]

    def may_subscribe(self, topic_filter: str) -> bool:
        """Whether one rule allows all that the filter matches; of a shared subscription, the part after the group counts."""
        if self._grants is None or topic_filter in _ANSWERS:
            return True
        if topic_filter.startswith(_PRESENCE):
            return self.may_observe
        if topic_filter.startswith(SHARE):
            topic_filter = topic_filter.split("/", 2)[-1]
        return any(grant.may_subscribe(topic_filter) for grant in self._grants)

    def check_event(self, event: Event) -> None:
        """``Denied`` unless one rule allows all of the event."""
        self.allowing(event)

    def allowing(self, event: Event) -> tuple[Grant, ...]:
        """The rules that allow all of the event; ``Denied`` if there are rules and none does."""
        if self._grants is None:
            return ()
        refusals, allowing = [], []
        for grant in self._grants:
            if grant.may_publish(event.topic):
                objections = list(grant.objections(event))
                if not objections:
                    allowing.append(grant)
                    if not self.metered:
                        break  # one is enough
                else:
                    refusals.append(f"{grant.rule}: {'; '.join(objections)}")
        if allowing:
            return tuple(allowing)
        raise Denied(
            " | ".join(refusals) or f"no rule allows {self} to publish to {event.topic!r}; ask for one with publish"
        )

    def check_subscription(self, subscription: Subscription, now: Instant) -> None:
        """``Denied`` unless one rule allows all of the subscription."""
        if self._grants is not None and subscription.topic not in _ANSWERS:
            self._check_interest(self._grants, subscription, now)

    def check_query(self, subscription: Subscription, now: Instant) -> None:
        """``Denied`` unless one rule allows to ask for the stored events that such a subscription would get."""
        if self._grants is None:
            return
        asking = tuple(grant for grant in self._grants if grant.query)
        if not asking:
            raise Denied(f"no rule allows {self} to query; ask for one with query = true")
        self._check_interest(asking, subscription, now)

    @property
    def may_observe(self) -> bool:
        """Whether it may be told of other clients at all."""
        return self._grants is None or any(grant.observe for grant in self._grants)

    def may_watch(self, area: Area) -> bool:
        """Whether one rule allows to watch that area."""
        return self._grants is None or any(
            grant.observe and grant.objection_to_observing(area) is None for grant in self._grants
        )

    def check_observation(self, area: Area) -> None:
        """``Denied`` unless one rule allows to watch that area; whom one is told of there, they decide themselves."""
        if self._grants is None:
            return
        refusals = []
        for grant in self._grants:
            if grant.observe:
                objection = grant.objection_to_observing(area)
                if objection is None:
                    return
                refusals.append(f"{grant.rule}: {objection}")
        raise Denied(
            " | ".join(refusals) or f"no rule allows {self} to observe others; ask for one with observe = true"
        )

    def check_plan(self) -> None:
        """``Denied`` unless it may have mechanisms exchanged."""
        allowed = self.trusted if self._grants is None else any(grant.plans for grant in self._grants)
        if not allowed:
            raise Denied(f"nothing allows {self} to command transitions; ask for a rule with plans = true")

    def check_hand_in(self, *, signed: bool = True) -> None:
        """``Denied`` unless it may hand in what jobs have found; what nobody has ``signed`` only if it may command, too."""
        granted = self._grants or ()
        if not (signed and any(grant.hand_in for grant in granted)):
            self.check_plan()

    def check_ownership(self, owner: str | None) -> None:
        """``Denied`` if the session of this client id was made by another user: it holds their messages.

        One of an anonymous client is anybody's: else nobody could begin to use a password.
        """
        if owner is not None and owner != self.user:
            raise Denied(
                f"the session {self.client_id!r} belongs to another user; connect under another client id",
                _CLIENT_ID_NOT_VALID,
            )

    def _check_interest(self, grants: tuple[Grant, ...], subscription: Subscription, now: Instant) -> None:
        refusals = []
        for grant in grants:
            if grant.may_subscribe(subscription.topic):
                objection = grant.objection_to(subscription, now)
                if objection is None:
                    return
                refusals.append(f"{grant.rule}: {objection}")
        raise Denied(
            " | ".join(refusals)
            or f"no rule allows {self} all that {subscription.topic!r} matches; ask for one with subscribe, or for less"
        )
