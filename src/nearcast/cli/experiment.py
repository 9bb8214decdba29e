"""``nearcast experiment``: what the documents state, what comes out here, and whether that is the same."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.printing import console, say_json, tell
from nearcast.cli.progress import progress_bar

if TYPE_CHECKING:
    from nearcast.experiment.execution import Failure, Task, Watcher
    from nearcast.experiment.reports import Report
    from nearcast.experiment.site.stored import Stored
    from nearcast.experiment.storage import Result

app = typer.Typer(help="Repeat the experiments of the documents and compare the results with theirs.")

Out = Annotated[Path, typer.Option(help="Folder for records, figures and reports.")]
Quick = Annotated[bool, typer.Option("--quick", help="Short runs with one seed.")]
Longer = Annotated[
    int, typer.Option(min=1, help="With --quick: runs in which nothing changes are so many times as long.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
OUT = Path("experiments")


@app.callback()
def experiment() -> None:
    """Repeat the experiments of the documents and compare the results with theirs."""


@app.command("list")
def list_experiments(as_json: AsJson = False) -> None:
    """List the experiments and what they check."""
    from nearcast.experiment.catalogue import EXPERIMENTS

    if as_json:
        say_json([each.to_json() for each in EXPERIMENTS])
        return
    from rich.table import Table

    table = Table("experiment", "title", "document", "checks")
    for each in EXPERIMENTS:
        table.add_row(each.name, each.title, each.document, f"{each.checks[0].id} .. {each.checks[-1].id}")
    console().print(table)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment of the list, or all.")],
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds; as many as usual if not given.")] = None,
    quick: Quick = False,
    longer: Longer = 1,
    out: Out = OUT,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; one for each core if not given.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Repeat runs that have been made before.")] = False,
    posts: Annotated[
        Path | None,
        typer.Option(
            help="For THYME's experiments: a log of real posts, CSV or JSON lines, instead of those drawn at random."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment, judge what it brought and draw its figures."""
    from nearcast.experiment import campaign
    from nearcast.experiment.reports import folder_of

    experiments = _chosen(name)
    _check_form(quick=quick, longer=longer)
    if posts is not None:
        from nearcast.experiment.thyme.evaluation import with_posts

        experiments = [with_posts(each, posts) for each in experiments]
    with _progress() as watcher:
        reports = campaign.run(
            experiments, out, quick=quick, longer=longer, seeds=seeds, jobs=jobs, fresh=fresh, watcher=watcher
        )
    folders = [folder_of(out, report.experiment, quick=quick, longer=longer) for report in reports]
    if as_json:
        _print_json(name, [report.to_json(folder) for report, folder in zip(reports, folders, strict=True)])
    else:
        for report, folder in zip(reports, folders, strict=True):
            _print(report)
            console().print(f"records and figures in {folder}\n", markup=False)
    failed = [f"{report.experiment}, {run}: {why}" for report in reports for run, why in report.failures.items()]
    if failed:
        from nearcast.errors import NearcastError

        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise NearcastError(f"{failed[0]}{more}")


@app.command()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments of the list, or all.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All experiments, also those that were not run.")] = False,
    quick: Quick = False,
    longer: Longer = 1,
    out: Out = OUT,
    html: Annotated[
        bool, typer.Option("--html", help="Write a site: pages that need no server and no network.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(help="With --html: folder of the site; report, in that of the records, if not given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the verdicts of earlier runs, and write them with the figures into pages.

    Without --html, each experiment gets one page of its own beside its records.
    """
    from nearcast.experiment.site.stored import collect

    _check_form(quick=quick, longer=longer)
    if to is not None and not html:
        raise typer.BadParameter("--to says where the site is written, so it needs --html")
    asked, several = _named(names or [], every=every)
    with progress_bar() as bar:
        task = bar.add_task("reading reports", total=len(asked))
        found = collect(out, asked, quick=True if quick else None, longer=longer, tell=lambda: bar.advance(task))
    problems = [each.damaged for each in found if each.damaged]
    if html:
        problems += _site(found, to or out / "report", as_json=as_json)
    else:
        _pages(found, several=several, as_json=as_json)
    if problems:
        from nearcast.errors import InvalidRecord

        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InvalidRecord(f"{problems[0]}{more}")


def _named(names: list[str], *, every: bool) -> tuple[Sequence[Any], bool]:
    """The experiments that are meant, each once, and whether that is said in a way that may mean several."""
    from nearcast.experiment.campaign import ALL

    if every and names:
        raise typer.BadParameter("name experiments, or say --all; not both")
    if not every and not names:
        raise typer.BadParameter("name at least one experiment, or say --all")
    asked = {each.name: each for name in ([ALL] if every else names) for each in _chosen(name)}
    return list(asked.values()), every or len(names) > 1 or names == [ALL]


def _site(found: "Sequence[Stored]", site: Path, *, as_json: bool) -> list[str]:
    from nearcast.experiment.site.layout import INDEX
    from nearcast.experiment.site.writing import summary, write_site

    with progress_bar() as bar:
        task = bar.add_task("writing pages", total=len(found))
        missing = write_site(found, site, tell=lambda: bar.advance(task))
    if as_json:
        documents = [each.to_json() for each in found]
        say_json({"experiments": documents, "summary": summary(found), "site": str(site / INDEX), "missing": missing})
    else:
        _print_counts(found)
        console().print(f"open {site / INDEX}", markup=False)
    return missing


def _pages(found: "Sequence[Stored]", *, several: bool, as_json: bool) -> None:
    """Verdicts on the screen, and a page for each experiment beside its records."""
    from nearcast.experiment.site.writing import write_page

    documents = []
    for each in found:
        page = write_page(each)
        documents.append({**each.to_json(), "page": None if page is None else str(page)})
        if as_json:
            continue
        if each.report is None:
            console().print(f"{each.name}: {each.damaged or f'not run; {each.command}'}\n", markup=False)
        else:
            _print(each.report)
            console().print(f"with figures: {page}\n", markup=False)
    if as_json:
        say_json({"experiments": documents} if several else documents[0])


def _print_counts(found: "Sequence[Stored]") -> None:
    from rich.table import Table

    from nearcast.experiment.site.overview import by_document
    from nearcast.experiment.site.stored import VERDICTS, counted

    table = Table("document", "experiments", "run", *VERDICTS)
    for document, group in by_document(found):
        run = sum(each.report is not None for each in group)
        table.add_row(document.name, str(len(group)), str(run), *(str(number) for number in counted(group).values()))
    console().print(table)


def _chosen(name: str) -> Sequence[Any]:
    from nearcast.errors import UnknownName
    from nearcast.experiment.campaign import chosen

    try:
        return chosen(name)
    except UnknownName as error:
        # A wrong word on the command line is wrong usage, not a failure.
        raise typer.BadParameter(str(error)) from None


def _check_form(*, quick: bool, longer: int) -> None:
    if longer > 1 and not quick:
        raise typer.BadParameter("--longer is for quick runs; without --quick they are as long as the documents'")


def _print_json(name: str, documents: list[dict[str, Any]]) -> None:
    """One document, whether it is of one experiment or of all."""
    from nearcast.experiment.campaign import ALL

    say_json({"experiments": documents} if name == ALL else documents[0])


def _print(report: "Report") -> None:
    from rich.markup import escape
    from rich.table import Table

    from nearcast.experiment.wording import number

    shown = console()
    form = ", quick" if report.quick else ""
    form += f", {report.longer} times as long" if report.longer > 1 else ""
    seeds = f"{len(report.seeds)} seed{'s' if len(report.seeds) > 1 else ''}{form}"
    shown.print(
        f"[bold]{escape(report.experiment)}[/bold]: {escape(report.title)} ({escape(report.document)}; {seeds})"
    )
    colours = {"reproduced": "green", "deviates": "yellow"}
    table = Table("", "stated", "measured", "accepted", "verdict")
    for check in report.checks:
        single = check.parts[0] if len(check.parts) == 1 else None
        measured = (number(single), single.accepted + single.unit) if single else ("", "")
        verdict = f"[{colours.get(check.verdict, 'dim')}]{check.verdict}[/]"
        table.add_row(check.id, escape(check.stated), *measured, verdict, style="bold")
        for part in () if single else check.parts:
            holds = {True: "", False: "[yellow]deviates[/]", None: "[dim]not run[/]"}[part.holds]
            table.add_row("", f"  {escape(part.name)}", number(part), part.accepted + part.unit, holds)
        if check.verdict == "not checkable":
            table.add_row("", f"  [dim]{escape(check.why)}[/]")
    shown.print(table)


@contextmanager
def _progress() -> "Iterator[Watcher]":
    """On stderr: all runs together, and each that is under way; a line for each that is over where nobody watches."""
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    from nearcast.experiment.execution import Failure, Watcher

    with progress_bar(MofNCompleteColumn(), TimeElapsedColumn()) as bar:

        class Shown(Watcher):
            def begin(self, tasks: "Sequence[Task]") -> None:
                self.tasks = tasks
                self.over = 0
                self.all = bar.add_task("all runs", total=len(tasks))
                self.bars: dict[int, Any] = {}

            def progress(self, number: int, share: float) -> None:
                if number not in self.bars:
                    self.bars[number] = bar.add_task(self.tasks[number].title, total=100)
                bar.update(self.bars[number], completed=round(100 * share))

            def done(self, number: int, outcome: "Result | Failure", *, reused: bool) -> None:
                self.over += 1
                bar.advance(self.all)
                if number in self.bars:
                    bar.remove_task(self.bars.pop(number))
                if bar.disable:
                    said = outcome.reason if isinstance(outcome, Failure) else f"{outcome.seconds:.1f} s"
                    how = "kept" if reused else said
                    tell(f"{self.over} of {len(self.tasks)}: {self.tasks[number].title}: {how}")

        yield Shown()
