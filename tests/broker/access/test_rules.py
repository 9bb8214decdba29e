"""What rules allow: topics, areas, time; and what they say when they do not."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.access.grants import looks_before
from nearcast.broker.access.principal import REMEMBERED_TOPICS, Peer, Principal
from nearcast.broker.access.rules import Rules
from nearcast.broker.settings import RuleSettings
from nearcast.errors import Denied
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import RELATIONS, WITH_TOLERANCE, TemporalPredicate
from nearcast.model.time import TimeFrame, duration
from nearcast.model.topic import topic_matches
from nearcast.settings_files import Duration

NOW = 1_800_000_000_000_000
HERE = Point(49.87, 8.65)
ELSEWHERE = Point(50.1, 8.7)
PEER = Peer("203.0.113.7")
CITY = {"circle": 5_000, "at": [HERE.lon, HERE.lat]}


def principal(*rules: RuleSettings, user: str | None = "ada", client_id: str = "phone") -> Principal:
    groups = {"drivers": ("bob", "eve")}
    return Principal(user, client_id, PEER, Rules(rules, groups).grants(user, client_id))


def event(
    topic: str = "news",
    place: Point | None = None,
    reach: Circle | None = None,
    to: str | None = None,
    when: TemporalPredicate | None = None,
) -> Event:
    return Event("e", topic, NOW, place=place, reach=reach, to=to, when=when)


def subscription(topic: str, since: str | None = "now") -> Subscription:
    return Subscription(topic, frame=TimeFrame.parse(since, now=NOW))


def test_without_rules_everything_is_allowed() -> None:
    anyone = principal()
    assert anyone.may_publish("a")
    assert anyone.may_publish_plain("a")
    assert anyone.may_receive("a")
    assert anyone.may_subscribe("#")
    anyone.check_event(event(to="age > 3"))
    anyone.check_subscription(subscription("#", since=None), NOW)
    anyone.check_query(subscription("#", since=None), NOW)
    anyone.check_plan()


def test_as_soon_as_there_is_a_rule_everything_else_is_denied() -> None:
    other = principal(RuleSettings(users=("bob",), publish=("#",), subscribe=("#",), plans=True, query=True))
    assert not other.may_publish("a")
    assert not other.may_receive("a")
    assert not other.may_subscribe("a")
    attempts: tuple[Callable[[], None], ...] = (
        lambda: other.check_event(event()),
        lambda: other.check_subscription(subscription("a"), NOW),
        lambda: other.check_query(subscription("a"), NOW),
        other.check_plan,
    )
    for forbidden in attempts:
        with pytest.raises(Denied, match="ada") as refusal:
            forbidden()
        assert refusal.value.reason == 0x87


@pytest.mark.parametrize(
    ("rule", "meant", "not_meant"),
    [
        (RuleSettings(users=("ada",), publish=("a",)), {"ada"}, {"bob", None}),
        (RuleSettings(users=("*",), publish=("a",)), {"ada", "bob"}, {None}),
        (RuleSettings(groups=("drivers",), publish=("a",)), {"bob", "eve"}, {"ada", None}),
        (RuleSettings(anonymous=True, publish=("a",)), {None}, {"ada"}),
        (RuleSettings(users=("ada",), groups=("drivers",), publish=("a",)), {"ada", "bob"}, {"joe", None}),
        (RuleSettings(users=("*",), anonymous=True, clients=("phone-*",), publish=("a",)), set(), {"ada", None}),
        (RuleSettings(users=("*",), clients=("tablet", "ph[oa]ne"), publish=("a",)), {"ada"}, {None}),
    ],
)
def test_a_rule_is_for_those_whom_it_names(
    rule: RuleSettings, meant: set[str | None], not_meant: set[str | None]
) -> None:
    assert all(principal(rule, user=user).may_publish("a") for user in meant)
    assert not any(principal(rule, user=user).may_publish("a") for user in not_meant)


def test_placeholders_stand_for_the_names_of_whoever_asks() -> None:
    rule = RuleSettings(users=("*",), publish=("home/%u/%c/#",), subscribe=("home/%u/#",))
    ada = principal(rule)
    assert ada.may_publish("home/ada/phone/door")
    assert not ada.may_publish("home/bob/phone/door")
    assert ada.may_subscribe("home/ada/+/door")
    assert not ada.may_subscribe("home/+/phone/door")


@pytest.mark.parametrize("name", ["+", "#", "a/b", "", "$SYS", "x/#", "a\0"])
def test_a_name_that_is_more_than_a_name_opens_nothing(name: str) -> None:
    rule = RuleSettings(users=("*",), publish=("%c/#", "home/%c/#"), subscribe=("%c/#", "home/%c/#"))
    wicked = principal(rule, client_id=name)
    for topic in ("home/ada/door", "a/b/c", "$SYS/x", "home//x"):
        assert not wicked.may_publish(topic)
        assert not wicked.may_subscribe(topic)


def test_an_anonymous_client_has_no_user_name_to_fill_in() -> None:
    rule = RuleSettings(anonymous=True, publish=("home/%u/#", "open/%c"))
    nobody = principal(rule, user=None)
    assert not nobody.may_publish("home//door")
    assert nobody.may_publish("open/phone")


def test_a_subscription_must_be_covered_and_not_only_overlap() -> None:
    ada = principal(RuleSettings(users=("ada",), subscribe=("news/+", "traffic/#")))
    assert ada.may_subscribe("news/sport")
    assert ada.may_subscribe("traffic/jam/+")
    assert not ada.may_subscribe("#")
    assert not ada.may_subscribe("news/#")
    assert ada.may_subscribe("$share/group/traffic/#")
    assert not ada.may_subscribe("$share/group/#")
    assert ada.may_receive("news/sport")
    assert not ada.may_receive("news/sport/football")


topics = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("/".join)
allowed = st.lists(st.sampled_from(("a", "b", "+", "a/#", "a/+", "b/+/a", "#")), max_size=3)


@given(allowed, st.sampled_from(("a", "+", "a/+", "a/b", "#", "a/#", "+/a")), topics)
def test_what_a_permitted_subscription_matches_may_be_received(filters: list[str], asked: str, topic: str) -> None:
    ada = principal(RuleSettings(users=("ada",), subscribe=tuple(filters)))
    if ada.may_subscribe(asked) and topic_matches(asked, topic):
        assert ada.may_receive(topic)


@given(allowed, st.lists(topics, max_size=30))
def test_remembered_rights_are_the_same_as_before(filters: list[str], asked: list[str]) -> None:
    ada = principal(RuleSettings(users=("ada",), publish=tuple(filters)))
    for topic in asked * 2:
        assert ada.may_publish(topic) == any(topic_matches(written, topic) for written in filters)


def test_topics_that_are_made_up_do_not_fill_the_memory() -> None:
    ada = principal(RuleSettings(users=("ada",), publish=("a",), subscribe=("a",)))
    for number in range(3 * REMEMBERED_TOPICS):
        assert not ada.may_publish(f"made/up/{number}")
        assert not ada.may_publish_plain(f"made/up/{number}")
        assert not ada.may_receive(f"made/up/{number}")
    assert len(ada._publishable) <= REMEMBERED_TOPICS
    assert len(ada._receivable) <= REMEMBERED_TOPICS
    assert len(ada._plainly) <= REMEMBERED_TOPICS


def test_an_event_must_lie_within_the_permitted_area() -> None:
    ada = principal(RuleSettings(users=("ada",), publish=("#",), within=CITY))
    ada.check_event(event(place=HERE))
    ada.check_event(event(place=HERE, reach=Circle(4_000, HERE)))
    ada.check_event(event(reach=Circle(5_000, HERE)))
    with pytest.raises(Denied, match=r"rule 1: its place is not within"):
        ada.check_event(event(place=ELSEWHERE))
    with pytest.raises(Denied, match="rule 1: its reach goes beyond"):
        ada.check_event(event(place=HERE, reach=Circle(5_001, HERE)))
    with pytest.raises(Denied, match="needs a place or a reach"):
        ada.check_event(event())


def test_a_reach_is_needed_where_it_is_bounded() -> None:
    ada = principal(RuleSettings(name="cars", users=("ada",), publish=("#",), reach_at_most=500))
    ada.check_event(event(reach=Circle(500, HERE)))
    with pytest.raises(Denied, match="rule 'cars': the reach goes 501 m far, and may at most 500 m"):
        ada.check_event(event(reach=Circle(501, HERE)))
    with pytest.raises(Denied, match="without one it would reach everybody"):
        ada.check_event(event(place=HERE))


def test_addressing_by_context_needs_to_be_allowed() -> None:
    plain = principal(RuleSettings(users=("ada",), publish=("#",)))
    with pytest.raises(Denied, match="may_address"):
        plain.check_event(event(to="age > 3"))
    with pytest.raises(Denied, match="may_address"):
        plain.check_event(event(when=TemporalPredicate("overlaps", NOW, None)))
    principal(RuleSettings(users=("ada",), publish=("#",), may_address=True)).check_event(event(to="age > 3"))


def test_one_rule_must_allow_all_of_an_event() -> None:
    near = RuleSettings(users=("ada",), publish=("#",), within=CITY, may_address=True)
    small = RuleSettings(users=("ada",), publish=("#",), reach_at_most=100)
    ada = principal(near, small)
    ada.check_event(event(reach=Circle(100, ELSEWHERE)))
    ada.check_event(event(reach=Circle(1_000, HERE), to="age > 3"))
    with pytest.raises(Denied, match=r"rule 1: its reach .* \| rule 2: .*may_address"):
        ada.check_event(event(reach=Circle(100, ELSEWHERE), to="age > 3"))


def test_the_past_is_open_as_far_as_the_rule_says() -> None:
    ada = principal(RuleSettings(users=("ada",), subscribe=("#",), history_at_most=Duration.of("2h"), query=True))
    for check in (ada.check_subscription, ada.check_query):
        check(subscription("a"), NOW)
        check(subscription("a", since="-2h"), NOW)
        with pytest.raises(Denied, match="begins 121m ago, and may at most 2h"):
            check(subscription("a", since="-121m"), NOW)
        with pytest.raises(Denied, match="beginning of time"):
            check(subscription("a", since=None), NOW)


def test_a_query_needs_the_right_to_read_as_well() -> None:
    ada = principal(
        RuleSettings(users=("ada",), subscribe=("a",)), RuleSettings(users=("ada",), subscribe=("b",), query=True)
    )
    ada.check_query(subscription("b"), NOW)
    with pytest.raises(Denied, match="'a'"):
        ada.check_query(subscription("a"), NOW)


def test_a_message_may_ask_for_contexts_as_far_back_as_the_rule_says() -> None:
    hour = duration("1h")
    rule = RuleSettings(users=("ada",), publish=("#",), may_address=True, history_at_most=Duration.of("1h"))
    ada = principal(rule)
    ada.check_event(event(when=TemporalPredicate("overlaps", NOW - hour, NOW)))
    ada.check_event(event(when=TemporalPredicate("after", None, NOW)))
    with pytest.raises(Denied, match="overlaps asks where receivers were more than 1h ago"):
        ada.check_event(event(when=TemporalPredicate("overlaps", NOW - hour - 1, NOW)))
    with pytest.raises(Denied, match="before asks"):
        ada.check_event(event(when=TemporalPredicate("before", NOW, None)))


@given(
    st.sampled_from(RELATIONS),
    st.none() | st.integers(0, 8),
    st.none() | st.integers(0, 8),
    st.integers(1, 8),
    st.integers(-12, 20),
)
def test_a_predicate_looks_back_exactly_if_some_interval_of_the_past_satisfies_it(
    relation: str, a: int | None, b: int | None, z: int, horizon: int
) -> None:
    if a is not None and b is not None and a > b:
        a, b = b, a
    predicate = TemporalPredicate(relation, a, b, z if relation in WITH_TOLERANCE else 0)
    past = range(-24, horizon + 1)
    satisfied = any(predicate.holds(start, end) for start in past for end in past if start < end)
    assert looks_before(predicate, horizon) == satisfied


def test_topics_that_speak_to_the_broker_are_open_to_everybody_but_not_by_wildcard() -> None:
    nobody = principal(RuleSettings(users=("bob",)))
    assert nobody.may_publish("$nearcast/position")
    assert nobody.may_subscribe("$nearcast/problems")
    nobody.check_subscription(subscription("$nearcast/problems"), NOW)
    assert not nobody.may_subscribe("$nearcast/#")


def test_plans_need_a_rule_or_trust() -> None:
    principal(RuleSettings(users=("ada",), plans=True)).check_plan()
    with pytest.raises(Denied, match="plans = true"):
        Principal(None, "phone", PEER, None, trusted=False).check_plan()


def test_a_session_belongs_to_the_user_who_made_it() -> None:
    principal().check_ownership("ada")
    for intruder in ("eve", None):
        with pytest.raises(Denied, match="another user") as refusal:
            principal(user=intruder).check_ownership("ada")
        assert refusal.value.reason == 0x85


def test_a_session_of_an_anonymous_client_is_anybodys() -> None:
    for user in ("ada", None):
        principal(user=user).check_ownership(None)


@given(
    st.lists(
        st.builds(
            RuleSettings,
            users=st.just(("ada",)),
            publish=st.sampled_from(((), ("a",), ("+",), ("a", "b"))),
            within=st.none() | st.just(CITY),
            reach_at_most=st.none() | st.just(100.0),
            may_address=st.booleans(),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from("abc"),
)
def test_a_plain_message_is_allowed_exactly_if_its_event_is(rules: list[RuleSettings], topic: str) -> None:
    ada = principal(*rules)
    for _ in range(2):  # the second time it is remembered
        if ada.may_publish_plain(topic):
            ada.check_event(event(topic))
        else:
            with pytest.raises(Denied):
                ada.check_event(event(topic))


def test_rules_without_placeholders_cost_nothing_per_client() -> None:
    rules = Rules([RuleSettings(users=("*",), publish=("a",))])
    first, second = rules.grants("ada", "1"), rules.grants("bob", "2")
    assert first is not None
    assert second is not None
    assert first[0] is second[0]
