"""The page of one experiment: what the document says, what came out, how that looks, and how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nearcast.experiment.checks import CheckResult, PartResult, shown
from nearcast.experiment.reports import Report
from nearcast.experiment.site.layout import INDEX, Link, body, cell, heading, page, pill, row, table
from nearcast.experiment.site.markup import Content, Html, element, html
from nearcast.experiment.site.stored import Stored, counted
from nearcast.metrics.distribution import confidence

ROWS: Final = 40
"""Of a figure's numbers that the page shows; the file has all."""

_BASIS: Final = {
    "text": "stands in the text",
    "figure": "shown in a figure only",
    "inferred": "follows from what the document says",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure on a page."""

    name: str
    caption: str
    image: str
    """Address of the picture, which may be the picture itself."""

    links: tuple[Link, ...]
    """Its files."""

    rows: tuple[tuple[str, ...], ...]
    """Its numbers, the names of the columns first; none if it has none."""

    missing: str = ""
    """Why there is no picture."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a page links to."""

    document: Link
    before: Link | None = None
    after: Link | None = None


def experiment_page(stored: Stored, figures: list[Shown], around: Around | None) -> str:
    """Without anything ``around`` it, it is a file of its own."""
    experiment, report = stored.experiment, stored.report
    path = (Link(INDEX, "Experiments"), around.document) if around else ()
    return page(
        f"{experiment.name}: {experiment.title}",
        element("h1", experiment.title),
        element("p", element("code", experiment.name), f" · {experiment.document}", class_="lead"),
        _state(stored),
        _repeating(stored),
        element("h2", "What is stated, and what came out", id="verdicts"),
        _verdicts(stored),
        _failures(report.failures) if report and report.failures else None,
        html(element("h2", "Figures", id="figures"), *map(_figure, figures)) if figures else None,
        _parameters(report) if report else None,
        _neighbours(around) if around else None,
        path=path,
        alone=around is None,
    )


def anchor(check: str) -> str:
    """Where a statement stands on its page."""
    return "check-" + "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in check)


def measured(part: PartResult) -> str:
    return shown(part.measured) + ("" if part.measured is None else part.unit)


def _state(stored: Stored) -> Html:
    counts = [pill(verdict, count=count) for verdict, count in counted([stored]).items() if count]
    said: Content = None
    if stored.damaged:
        said = element("p", element("strong", "The report cannot be read. "), stored.damaged, class_="notice")
    elif stored.report is None:
        said = element("p", element("strong", "Not run. "), "The command below runs it.", class_="notice")
    return html(element("p", *[html(count, " ") for count in counts], class_="counts"), said)


def _repeating(stored: Stored) -> Html:
    report = stored.report
    facts: list[tuple[str, Content]] = []
    if report is not None:
        facts = [
            ("Runs", f"{report.form}: {_form(report)}"),
            ("Seeds", ", ".join(map(str, report.seeds))),
            ("Finished", _date(report.finished)),
            ("nearcast", report.version or "not written down"),
            ("Processor time", f"{sum(report.seconds.values()):.1f} s in {len(report.seconds)} runs"),
        ]
    facts.append(("Repeat it" if report else "Run it", element("code", stored.command, class_="command")))
    return element("dl", *[html(element("dt", name), element("dd", value)) for name, value in facts], class_="facts")


def _form(report: Report) -> str:
    return (
        "shorter than the document's"
        if report.quick
        else "as long as the document's, or docs/experiments.md says why not"
    )


def _date(finished: str) -> Content:
    if not finished:
        return "not written down"
    return element("time", f"{finished.replace('T', ' ').removesuffix('+00:00')} UTC", datetime=finished)


_COLUMNS: Final = ("check", "stated", "measured", "95 % interval", "accepted", "verdict")


def _verdicts(stored: Stored) -> Html:
    seeds = len(stored.report.seeds) if stored.report else 0
    several = f"Means over {seeds} seeds, with the interval that holds the true mean with 95 % confidence (Student)."
    caption = several if seeds > 1 else "One seed, so there is no interval." if seeds else "Nothing was measured."
    return table(_COLUMNS, *[_check(check, seeds) for check in stored.checks], caption=caption, class_="verdicts")


def _check(check: CheckResult, seeds: int) -> Html:
    single = check.parts[0] if len(check.parts) == 1 else None
    first = row(
        heading(check.id, scope="rowgroup"),
        cell("stated", check.stated),
        *(_numbers(single, seeds) if single else [element("td", colspan=3, class_="none")]),
        cell("verdict", pill(check.verdict)),
        class_="check",
    )
    parts = [] if single else [_part(part, seeds) for part in check.parts]
    why = f"{_BASIS[check.basis].capitalize()}." + (f" Why: {check.why}." if check.why else "")
    reason = row(element("td", class_="none"), cell("", why, colspan=5, class_="why"))
    return body(first, *parts, reason, id=anchor(check.id))


def _part(part: PartResult, seeds: int) -> Html:
    holds = {True: "holds", False: "does not hold", None: "not measured"}[part.holds]
    return row(
        element("td", class_="none"),
        cell("part", part.name),
        *_numbers(part, seeds),
        cell("holds", holds, class_=None if part.holds else "fails"),
        class_="part",
    )


def _numbers(part: PartResult, seeds: int) -> list[Content]:
    half = confidence(part.deviation, seeds)
    interval = "–" if half is None or part.measured is None else f"± {half:.2g}{part.unit}"
    return [
        cell("measured", measured(part), class_="number"),
        cell("95 % interval", interval, class_="number unknown" if half is None else "number"),
        cell("accepted", part.accepted + part.unit, class_="number"),
    ]


def _failures(failures: Mapping[str, str]) -> Html:
    items = [element("li", element("strong", run), f": {why}") for run, why in failures.items()]
    return html(element("h2", "Runs that failed", id="failures"), element("ul", *items, class_="notice"))


def _figure(figure: Shown) -> Html:
    if figure.missing:
        return element("figure", element("p", figure.missing, class_="notice"), element("figcaption", figure.caption))
    links = [html(" · ", element("a", link.text, href=link.target)) for link in figure.links]
    table_below = "; its numbers are in the table below" if figure.rows else ""
    drawn = element(
        "figure",
        element("img", src=figure.image, alt=f"{figure.caption}{table_below}", loading="lazy"),
        element("figcaption", figure.caption, *links),
    )
    return element("div", drawn, _data(figure) if figure.rows else None, id=f"figure-{figure.name}", class_="figure")


def _data(figure: Shown) -> Html:
    columns, rows = figure.rows[0], figure.rows[1:]
    some = f", the first {ROWS} of {len(rows)} rows; the CSV file has all" if len(rows) > ROWS else ""
    some_rows = [row(*[cell(name, value) for name, value in zip(columns, each, strict=False)]) for each in rows[:ROWS]]
    # Keyboards must be able to scroll what is wider than the screen.
    scrolled = element(
        "div",
        table(columns, body(*some_rows), caption=f"{figure.caption}{some}", class_="data"),
        class_="scrolled",
        tabindex=0,
        role="region",
        aria_label=f"Numbers of the figure: {figure.caption}",
    )
    return element("details", element("summary", f"Numbers of the figure ({len(rows)} rows)"), scrolled)


def _parameters(report: Report) -> Html:
    names = list(dict.fromkeys(name for run in report.runs for name in run.parameters))
    values = {name: {run.parameters.get(name) for run in report.runs} for name in names}
    common = [name for name in names if len(values[name]) == 1]
    rows = [
        row(
            heading(run.name),
            cell("kind", run.kind),
            cell("processor time", _seconds(report, run.name), class_="number"),
            cell("differs in", _list({name: run.parameters[name] for name in run.parameters if name not in common})),
        )
        for run in report.runs
    ]
    shared = {name: report.runs[0].parameters[name] for name in common}
    return html(
        element("h2", "Parameters", id="parameters"),
        None if rows else element("p", "Not written down: the report was made by an earlier version."),
        table(("run", "kind", "processor time", "differs in"), body(*rows), class_="runs") if rows else None,
        element(
            "details",
            element("summary", f"The same in all runs ({len(shared)})"),
            table(("parameter", "value"), body(*[row(heading(name), cell("value", shared[name])) for name in shared])),
        )
        if shared
        else None,
    )


def _seconds(report: Report, run: str) -> str:
    found = [seconds for name, seconds in report.seconds.items() if name.partition(", ")[2] == run]
    return f"{sum(found):.1f} s" if found else "–"


def _list(parameters: Mapping[str, str]) -> Content:
    if not parameters:
        return "nothing"
    return element("ul", *[element("li", element("code", f"{name} = {parameters[name]}")) for name in parameters])


def _neighbours(around: Around) -> Html:
    links = [
        element("a", f"{word}: {link.text}", href=link.target, rel=rel)
        for word, rel, link in (("Previous", "prev", around.before), ("Next", "next", around.after))
        if link is not None
    ]
    return element("nav", *links, aria_label="Other experiments", class_="neighbours")
