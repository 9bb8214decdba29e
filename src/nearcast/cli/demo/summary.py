"""What came of it, in plain lines; and whether it was right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nearcast.cli.demo.broker import LADDER
from nearcast.cli.demo.devices import PROXIMITY, TAXIS
from nearcast.cli.demo.meter import REGIONS, Counts
from nearcast.cli.demo.pipeline import Pipeline, judged_words, observation_words
from nearcast.cli.demo.play import Play, short
from nearcast.cli.demo.stories import Story, reason
from nearcast.errors import NearcastError


def summary(play: Play) -> Iterator[str]:
    """Of the city; ASCII, for logs."""
    seen, total = play.witness.statistics(), play.meter.total
    yield (
        f"{play.crowd.statistics().came} people over MQTT in {total.seconds:.0f} s: "
        f"{seen.published:,} events, {seen.deliveries:,} deliveries"
    )
    yield (
        f"{seen.lost} lost, {seen.doubled} doubled, {seen.strays} to somebody too far away "
        f"(of {seen.certain:,} that were certainly due)"
    )
    yield f"{len(play.meter.changes)} transitions:"
    for change in play.meter.changes:
        how = ", by hand" if change is play.by_hand else ", planned by Spark" if change is play.by_plan else ""
        yield f"  {change.at:6.1f} s  {change.before} -> {change.after} with {change.people} people{how}"
    yield from _happened(play)
    if play.pipeline is not None:
        yield from _by_spark(play.pipeline)
    yield (
        f"{'what it costs':<20}{'seconds':>8}{'kB/s':>8}{'context/s':>11}{'deliveries':>12}{'bytes each':>11}{'precision':>10}"
    )
    for scheme in (each + regions for each in LADDER for regions in ("", REGIONS)):
        if scheme in play.meter.by_scheme:
            yield _costs(short(scheme), play.meter.by_scheme[scheme])
    yield _costs("in all", total)


def _happened(play: Play) -> Iterator[str]:
    devices, jams, newcomers = play.devices.statistics(), play.jams, play.newcomers
    yield (
        f"the ambulance sounded its siren {devices.raised} times, {PROXIMITY.radius:.0f} m around wherever it was: "
        f"{TAXIS} taxis heard {devices.heard} as it came nearer, and let {devices.passed} pass as it drove away"
    )
    yield (
        f"{jams.said} jams at the bridge: {jams.heard} times somebody heard who was driving there, "
        f"{jams.strangers} times somebody else"
    )
    yield (
        f"{newcomers.came} newcomers asked for the last two hours: {newcomers.from_the_past} events came at once, "
        f"{newcomers.live} more while they stayed"
    )


def _by_spark(pipeline: Pipeline) -> Iterator[str]:
    yield f"Spark, beside the broker, looked {_times(pipeline.observations)}; when it planned, it saw:"
    if pipeline.plan is not None:
        yield from (f"  {line}" for line in observation_words(pipeline.plan.observed))
        yield f"  it {pipeline.plan_words()}"
        yield f"  the broker carried it out, and {pipeline.moved} people came to the scheme of their place"
    if pipeline.judged is not None:
        yield f"  of all that was said it found {judged_words(pipeline.judged)}, the last check of clients not counted"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _costs(name: str, counts: Counts) -> str:
    return (
        f"  {name:<18}{counts.seconds:>8.1f}{counts.per_second(counts.bytes_to + counts.bytes_from) / 1e3:>8.1f}"
        f"{counts.per_second(counts.context_messages):>11.1f}{counts.delivered:>12,}{counts.bytes_per_delivery:>11,.0f}"
        f"{counts.precision:>10.2f}"
    )


def told(number: int, story: Story) -> Iterator[str]:
    """A story in three lines."""
    yield f"{number}. {story.title}: {' '.join(story.said)}"
    verdict = "(as defined)" if story.holds else "(WRONG)"
    yield f"   {'; '.join(line.rstrip(',') for line in story.answer)} {verdict}"
    yield f"   why: {story.explanation.detail} - {reason(story.explanation)}"


def insist(play: Play, stories: Sequence[Story]) -> None:
    """A demonstration that shows something wrong has failed; and so has one that shows nothing."""
    insist_on_right(play, stories)
    _insist_on_shown(play)


def insist_on_right(play: Play, stories: Sequence[Story] = ()) -> None:
    seen, wrong = play.witness.statistics(), [story.title for story in stories if not story.holds]
    if seen.lost or seen.doubled or seen.strays:
        raise NearcastError(
            f"the demo found {seen.lost} lost, {seen.doubled} doubled and {seen.strays} stray deliveries; please report this"
        )
    if play.jams.strangers:
        raise NearcastError(
            f"the demo found {play.jams.strangers} drivers who heard of a jam that did not concern them; please report this"
        )
    if wrong:
        raise NearcastError(
            f"the demo found answers that differ from the definition: {'; '.join(wrong)}; please report this"
        )


def _insist_on_shown(play: Play) -> None:
    ran = [change.after for change in play.meter.changes if change is not play.by_hand]
    if LADDER[-1] not in ran or ran[-1] != LADDER[0]:  # a step may be skipped where many come or go at once
        raise NearcastError(
            f"the broker did not go from {LADDER[0]} to {LADDER[-1]} and back, but over {', '.join(ran) or 'nothing'}; "
            "is this machine very busy? Try fewer --people or more --seconds"
        )
    if play.pipeline is not None and not (play.by_plan is not None and play.pipeline.moved):
        raise NearcastError(
            "no plan of Spark's was carried out; is this machine very busy? Try more --seconds, or --no-spark"
        )
    if not play.witness.statistics().certain:
        raise NearcastError("the demo has shown nothing: nobody was near when somebody spoke; try more --people")
