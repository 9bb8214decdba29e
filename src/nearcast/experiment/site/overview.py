"""The pages about all experiments: which there are, by document, and every statement with its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nearcast.experiment.catalogue import DOCUMENTS, Document
from nearcast.experiment.checks import CheckResult, Verdict
from nearcast.experiment.site.experiment_page import anchor, measured
from nearcast.experiment.site.layout import (
    INDEX,
    MEANING,
    STATEMENTS,
    body,
    cell,
    heading,
    page,
    pill,
    row,
    table,
)
from nearcast.experiment.site.markup import Content, Html, element, html
from nearcast.experiment.site.stored import VERDICTS, Stored, counted


def page_of(experiment: str) -> str:
    return f"{experiment}.html"


def part_of(document: Document) -> str:
    """Where a document's experiments stand on the first page."""
    return "document-" + "".join(letter if letter.isalnum() else "-" for letter in document.name.lower())


def by_document(found: Sequence[Stored]) -> list[tuple[Document, list[Stored]]]:
    """Documents of which there is nothing are left out."""
    names = {document.name: {each.name for each in document.experiments} for document in DOCUMENTS}
    groups = [(document, [each for each in found if each.name in names[document.name]]) for document in DOCUMENTS]
    known = {each.name for _, group in groups for each in group}
    others = [each for each in found if each.name not in known]
    if others:
        groups.append((Document("Others", "", tuple(each.experiment for each in others)), others))
    return [(document, group) for document, group in groups if group]


def index_page(found: Sequence[Stored]) -> str:
    groups = by_document(found)
    total = counted(found)
    run = sum(each.report is not None for each in found)
    seconds = sum(sum(each.report.seconds.values()) for each in found if each.report)
    return page(
        "Experiments",
        element("h1", "Experiments"),
        element(
            "p",
            f"{sum(total.values())} statements in {len(found)} experiments, of which {run} were run "
            f"(in {seconds / 60.0:.1f} minutes of a processor). Each statement is measured again here; a verdict says whether that is the same.",
            class_="lead",
        ),
        _legend(found),
        element("h2", "Documents", id="documents"),
        _documents(groups),
        _filter("experiments"),
        element("div", *[_document(document, group) for document, group in groups], data_filtered=True),
        current=INDEX,
    )


def statements_page(found: Sequence[Stored]) -> str:
    rows = [_statement(document, each, check) for document, group in by_document(found) for each in group
            for check in each.checks]  # fmt: skip
    return page(
        "All statements",
        element("h1", "All statements"),
        element("p", "What the documents state, and what came out here.", class_="lead"),
        _filter("statements", documents=[document.name for document, _ in by_document(found)]),
        table(("check", "experiment", "stated", "measured", "verdict", "why"), body(*rows, data_filtered="")),
        current=STATEMENTS,
    )


def _legend(found: Sequence[Stored]) -> Html:
    items = [
        html(
            element(
                "dt", element("a", pill(verdict, count=count), href=f"{STATEMENTS}#verdict={verdict.replace(' ', '+')}")
            ),
            element("dd", MEANING[verdict]),
        )
        for verdict, count in counted(found).items()
    ]
    return element("dl", *items, class_="legend")


def _documents(groups: Sequence[tuple[Document, list[Stored]]]) -> Html:
    rows = []
    for document, group in groups:
        counts = counted(group)
        rows.append(
            row(
                heading(element("a", document.name, href=f"#{part_of(document)}")),
                cell("experiments", f"{sum(each.report is not None for each in group)} of {len(group)} run"),
                *[cell(verdict, counts[verdict], class_="number") for verdict in VERDICTS],
                cell("share", _bar(counts)),
            )
        )
    return table(("document", "experiments", *VERDICTS, "share"), body(*rows), class_="counted")


def _bar(counts: Mapping[Verdict, int]) -> Html:
    """The numbers beside it say the same, so that it need not be read out.  Drawn, because a server may forbid pages to have styles."""
    parts, start = [], 0
    for verdict, count in counts.items():
        if count:
            parts.append(element("rect", x=start, y=0, width=count, height=1, class_=verdict.replace(" ", "-")))
        start += count
    return element(
        "svg", *parts, viewBox=f"0 0 {start} 1", preserveAspectRatio="none", class_="bar", aria_hidden="true"
    )


def _document(document: Document, group: Sequence[Stored]) -> Html:
    return element(
        "section",
        element("h2", document.name, id=part_of(document)),
        element("p", document.about) if document.about else None,
        table(
            ("experiment", "what", "where", "runs", "verdicts"),
            body(*[_experiment(each) for each in group]),
            class_="experiments",
        ),
        data_group=True,
    )


def _experiment(stored: Stored) -> Html:
    verdicts = stored.verdicts
    report = stored.report
    runs = "damaged" if stored.damaged else "not run" if report is None else report.form
    if report is not None:
        runs += f", {len(report.seeds)} seed{'s' if len(report.seeds) > 1 else ''}"
    counts: list[Content] = [
        html(pill(verdict, count=verdicts[verdict]), " ") for verdict in VERDICTS if verdicts[verdict]
    ]
    return row(
        heading(element("a", stored.name, href=page_of(stored.name))),
        cell("what", stored.experiment.title),
        cell("where", stored.experiment.document),
        cell("runs", runs, class_="runs"),
        cell("verdicts", *counts),
        data_verdicts="|".join(verdict for verdict in VERDICTS if verdicts[verdict]),
        # What can be found by searching, though the row does not show it.
        data_more=" ".join(f"{check.id} {check.stated}" for check in stored.checks),
    )


def _statement(document: Document, stored: Stored, check: CheckResult) -> Html:
    values: list[Content] = [
        element("li", f"{part.name}: " if len(check.parts) > 1 else None, measured(part)) for part in check.parts
    ]
    return row(
        heading(element("a", check.id, href=f"{page_of(stored.name)}#{anchor(check.id)}")),
        cell("experiment", element("a", stored.name, href=page_of(stored.name))),
        cell("stated", check.stated),
        cell("measured", element("ul", *values, class_="values") if values else "–"),
        cell("verdict", pill(check.verdict)),
        cell("why", check.why, class_="why"),
        data_verdicts=check.verdict,
        data_document=document.name,
    )


def _filter(what: str, documents: Sequence[str] = ()) -> Html:
    """Hidden until the script, without which it would do nothing, has been loaded."""
    choices = [
        _choice("verdict", "Verdict", VERDICTS),
        _choice("document", "Document", documents) if documents else None,
    ]
    return element(
        "form",
        element("label", "Search ", element("input", type="search", name="search", autocomplete="off")),
        *choices,
        element("button", "Show all", type="reset"),
        element("p", role="status", data_count=what),
        class_="filter",
        role="search",
        aria_label=f"Which {what} are shown",
        hidden=True,
    )


def _choice(name: str, label: str, values: Sequence[str]) -> Html:
    options = [element("option", "all", value=""), *(element("option", value, value=value) for value in values)]
    return element("label", f"{label} ", element("select", *options, name=name))
