"""The report on all experiments: pages that say what the records say, whatever state these are in."""

from __future__ import annotations

import filecmp
import json
import math
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from nearcast.cli import main
from nearcast.errors import InvalidInput, InvalidRecord
from nearcast.experiment import campaign
from nearcast.experiment.catalogue import DOCUMENTS, EXPERIMENTS
from nearcast.experiment.checks import CheckResult, PartResult
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.figures.files import save
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.parameters import RunParameters
from nearcast.experiment.reports import FigureFiles, Report, folder_of
from nearcast.experiment.site import writing
from nearcast.experiment.site.markup import element, html
from nearcast.experiment.site.stored import VERDICTS, collect, counted
from nearcast.experiment.site.writing import write_site
from nearcast.experiment.storage import write_json
from nearcast.metrics.distribution import confidence

NASTY = "</td><script>alert(1)</script> \" ' & ]]> \x00\x1b ñ"
RUN = ("lcn", "bypass-e1", "steam-st1", "contextcast-e3", "thyme-th1")
"""Of which there are reports: one of each document."""


@cache
def drawn() -> dict[str, bytes]:
    """The files of a figure."""
    figure = lines({"curve": [(1.0, 2.0), (3.0, 4.5)]}, x="metres", y="messages", title="")
    with TemporaryDirectory() as folder:
        return {name: (Path(folder) / name).read_bytes() for name in save(figure, Path(folder), "cost")}


def keep(out: Path, experiment: Experiment, *, seeds: int = 1, text: str = "", longer: int = 1) -> Path:
    """A report as a campaign would have left it, with every verdict in turn."""
    folder = folder_of(out, experiment.name, quick=True, longer=longer)
    checks = []
    for number, check in enumerate(experiment.checks):
        verdict = VERDICTS[number % len(VERDICTS)]
        parts = tuple(
            PartResult(part.name, 0.25 + number, 0.5 if seeds > 1 else None, str(part.accepted), part.unit, holds=True)
            for part in check.parts
        )
        checks.append(CheckResult(check.id, check.stated, None, check.basis, verdict, f"because {text}", parts))
    (folder / "figures").mkdir(parents=True)
    for name, content in drawn().items():
        (folder / "figures" / name).write_bytes(content)
    report = Report(
        experiment=experiment.name,
        document=experiment.document,
        title=experiment.title,
        quick=True,
        longer=longer,
        seeds=list(range(1, seeds + 1)),
        checks=checks,
        figures=[FigureFiles("cost", f"What it costs {text}", *(f"figures/{name}" for name in drawn()))],
        failures={"seed 1, late": f"too late {text}"} if text else {},
        seconds={f"seed {seed}, {run}": 1.5 for seed in range(1, seeds + 1) for run in ("one", "other")},
        version="0.0.7",
        finished="2026-01-02T03:04:05+00:00",
        runs=[
            RunParameters("one", "simulated", {"run.duration": "10 s", "scheme.kind": "GRID"}),
            RunParameters("other", "simulated", {"run.duration": "10 s", "scheme.kind": f"STE {text}"}),
        ],
    )
    write_json(folder / "report.json", report)
    return folder


def named(name: str) -> Experiment:
    return next(each for each in EXPERIMENTS if each.name == name)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign of which the most has not been run yet."""
    out = tmp_path_factory.mktemp("stored")
    for name in RUN:
        keep(
            out,
            named(name),
            seeds=3 if name == "lcn" else 1,
            text=NASTY if name == RUN[1] else "",
        )
    return out


@pytest.fixture(scope="module")
def site(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "site"
    assert write_site(collect(stored, EXPERIMENTS), folder) == []
    return folder


def parsed(page: Path) -> ET.Element:
    """Every page is also well-formed XML, which is easier to read without mistakes than HTML."""
    text = page.read_text(encoding="utf-8")
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    return ET.fromstring(text)  # noqa: S314 - our own pages


def text_of(node: ET.Element) -> str:
    return " ".join("".join(node.itertext()).split())


def report(out: Path, *arguments: str) -> int:
    return main(["experiment", "report", "--out", str(out), *arguments])


def test_every_experiment_of_the_catalogue_has_a_page_and_a_line(site: Path) -> None:
    index = parsed(site / "index.html")
    linked = {link.get("href") for link in index.iter("a")}
    assert {f"{each.name}.html" for each in EXPERIMENTS} <= linked
    assert {page.name for page in site.glob("*.html")} == {f"{each.name}.html" for each in EXPERIMENTS} | {
        "index.html",
        "statements.html",
    }
    assert [text_of(heading) for heading in index.iter("h2")] == ["Documents", *(each.name for each in DOCUMENTS)]


def test_pages_are_whole_and_say_what_they_are(site: Path) -> None:
    for path in site.glob("*.html"):
        page = parsed(path)
        assert text_of(next(page.iter("title")))
        assert len(list(page.iter("h1"))) == len(list(page.iter("main"))) == 1
        assert all(image.get("alt") for image in page.iter("img"))
        # A server may forbid what stands within a page.
        assert not [name for node in page.iter() for name in node.attrib if name == "style" or name.startswith("on")]
        assert not list(page.iter("style"))
        ids = [node.get("id") for node in page.iter() if node.get("id")]
        assert len(ids) == len(set(ids)), path
        for table in page.iter("table"):
            columns = len(table.findall("thead/tr/th"))
            for row in table.iterfind("tbody/tr"):
                assert sum(int(cell.get("colspan", 1)) for cell in row) == columns, path


def test_every_link_leads_somewhere_within_the_site(site: Path) -> None:
    ids = {page: {node.get("id") for node in parsed(page).iter()} for page in site.glob("*.html")}
    used = set()
    for page in ids:
        for node in parsed(page).iter():
            for address in (node.get("href"), node.get("src")):
                if address is None:
                    continue
                file, _, fragment = unquote(address).partition("#")
                target = (page.parent / file).resolve() if file else page.resolve()
                assert target.is_relative_to(site.resolve()), address
                assert target.is_file(), address
                if fragment and "=" not in fragment:  # what is chosen is no place
                    assert fragment in ids[target], address
                used.add(target)
    assert used == {path.resolve() for path in site.rglob("*") if path.is_file()} - {(site / "report.json").resolve()}


def test_the_verdicts_are_those_of_the_records(stored: Path, site: Path) -> None:
    found = {each.name: {check.id: check.verdict for check in each.checks} for each in collect(stored, EXPERIMENTS)}
    for name in RUN:
        kept = json.loads((stored / name / "quick" / "report.json").read_bytes())
        assert found[name] == {check["id"]: check["verdict"] for check in kept["checks"]}
    for each in EXPERIMENTS:
        table = next(
            table for table in parsed(site / f"{each.name}.html").iter("table") if table.get("class") == "verdicts"
        )
        shown = {text_of(row[0]): text_of(row[-1])[2:] for row in table.iter("tr") if row.get("class") == "check"}
        assert shown == found[each.name]
    rows = [row for row in parsed(site / "statements.html").iter("tr") if row.get("data-verdicts")]
    assert [(text_of(row[1]), text_of(row[0]), row.get("data-verdicts")) for row in rows] == [
        (each.name, check, verdict) for each in EXPERIMENTS for check, verdict in found[each.name].items()
    ]
    summary = json.loads((site / "report.json").read_bytes())
    checks = {one["experiment"]: one["checks"] for each in summary["documents"] for one in each["experiments"]}
    assert checks == found
    assert summary["verdicts"] == Counter(verdict for each in found.values() for verdict in each.values())


def test_counts_of_documents_add_up(stored: Path, site: Path) -> None:
    table = next(table for table in parsed(site / "index.html").iter("table") if table.get("class") == "counted")
    shown = [[int(text_of(cell)) for cell in row[2:6]] for row in table.iterfind("tbody/tr")]
    total = counted(collect(stored, EXPERIMENTS))
    assert [sum(column) for column in zip(*shown, strict=True)] == list(total.values())
    assert sum(total.values()) == sum(len(each.checks) for each in EXPERIMENTS)


def test_what_was_not_run_says_so_with_its_command(site: Path) -> None:
    page = text_of(parsed(site / "bypass-e2.html"))
    assert "Not run." in page
    assert "nearcast experiment run bypass-e2 --quick" in page
    (line,) = [
        row for row in parsed(site / "index.html").iter("tr") if row[0].find("a[@href='bypass-e2.html']") is not None
    ]
    assert "not run" in text_of(line)


def test_a_page_says_how_to_repeat_it(site: Path) -> None:
    page = text_of(parsed(site / "lcn.html"))
    for said in (
        "nearcast experiment run lcn --quick --seeds 3",
        "1, 2, 3",
        "2026-01-02 03:04:05 UTC",
        "0.0.7",
        "9.0 s in 6 runs",
    ):
        assert said in page
    parameters = next(table for table in parsed(site / "lcn.html").iter("table") if table.get("class") == "runs")
    assert [text_of(row[-1]) for row in parameters.iterfind("tbody/tr")] == ["scheme.kind = GRID", "scheme.kind = STE"]
    assert "run.duration" not in text_of(parameters)


def test_figures_come_with_their_numbers(site: Path) -> None:
    page = parsed(site / "lcn.html")
    (image,) = page.iter("img")
    assert (site / str(image.get("src"))).read_text().startswith("<?xml")
    assert (site / "figures" / "lcn" / "cost.csv").read_text().splitlines()[0] == "series,metres,messages"
    numbers = next(table for table in page.iter("table") if table.get("class") == "data")
    assert [[text_of(cell) for cell in row][1:] for row in numbers.iterfind("tbody/tr")] == [["1", "2"], ["3", "4.5"]]


def test_several_seeds_have_an_interval_and_one_has_none(site: Path) -> None:
    half = confidence(0.5, 3)
    assert f"± {half:.2g}" in text_of(parsed(site / "lcn.html"))
    assert "±" not in text_of(parsed(site / "steam-st1.html"))


@pytest.mark.parametrize("seeds", [2, 3, 5, 11, 21, 22, 40, 200])
def test_the_interval_is_student_s(seeds: int) -> None:
    half = confidence(1.0, seeds)
    assert half is not None
    edge, freedom = half * math.sqrt(seeds), seeds - 1
    at = np.linspace(0.0, edge, 200_001)
    density = (1.0 + at**2 / freedom) ** (-(freedom + 1) / 2)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    within = 2.0 * scale * float(np.sum((density[1:] + density[:-1]) / 2.0)) * edge / 200_000
    assert within == pytest.approx(0.95, abs=2e-4)


def test_there_is_no_interval_of_one_run() -> None:
    assert confidence(None, 1) is None
    assert confidence(None, 3) is None


def test_what_reports_say_is_text_and_never_markup(site: Path) -> None:
    for name in ("bypass-e1.html", "statements.html", "index.html"):
        page = parsed(site / name)
        assert all(node.get("src") == "report.js" for node in page.iter("script"))
    assert "because </td><script>alert(1)</script> \" ' & ]]>" in text_of(parsed(site / "bypass-e1.html"))


def test_markup_escapes_what_is_no_markup() -> None:
    text = NASTY + "\udc80"  # which is what the name of a file may have
    made = element(
        "p", text, element("i"), html("a", element("b", "<")), title=text, hidden=False, lang=None, data_more_words=1
    )
    node = ET.fromstring(made)  # noqa: S314
    shown = text.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\udc80", "\ufffd")
    assert (node.text, node.get("title")) == (shown, shown)
    assert set(node.attrib) == {"title", "data-more-words"}
    assert text_of(node).endswith("a<")


def test_the_same_records_are_the_same_site(stored: Path, site: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    for _ in range(2):  # in place of nothing, and of itself
        write_site(collect(stored, EXPERIMENTS), again)
    assert [path.name for path in tmp_path.iterdir()] == ["again"]
    files = sorted(str(path.relative_to(site)) for path in site.rglob("*") if path.is_file())
    assert files == sorted(str(path.relative_to(again)) for path in again.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(site, again, files, shallow=False)[0] == files


def test_a_site_may_be_written_where_one_stands(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_site(collect(stored, [named("lcn")]), Path())
    assert (tmp_path / "here" / "lcn.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_pages_of_what_is_no_longer_asked_for_go(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    write_site(collect(stored, EXPERIMENTS), folder)
    write_site(collect(stored, [named("lcn")]), folder)
    assert {path.name for path in folder.glob("*.html")} == {"index.html", "statements.html", "lcn.html"}


def test_a_folder_with_other_things_is_left_alone(stored: Path, tmp_path: Path) -> None:
    letter = tmp_path / "letters" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("dear")
    with pytest.raises(InvalidInput, match="other things"):
        write_site(collect(stored, EXPERIMENTS), letter.parent)
    with pytest.raises(InvalidInput, match="is a file"):
        write_site(collect(stored, EXPERIMENTS), letter)
    assert [path.name for path in letter.parent.iterdir()] == ["letter.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_what_goes_wrong_leaves_everything_as_it_was(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    write_site(collect(stored, [named("lcn")]), folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def full(*_arguments: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "statements_page", full)
    with pytest.raises(InvalidRecord, match="No space left"):
        write_site(collect(stored, EXPERIMENTS), folder)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_damaged_report_is_named_and_the_others_are_there(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, named("lcn"))
    broken = keep(tmp_path, named("bypass-e1")) / "report.json"
    broken.write_bytes(broken.read_bytes()[:200])
    assert report(tmp_path, "--all", "--html") == 1
    assert str(broken) in capsys.readouterr().err
    page = text_of(parsed(tmp_path / "report" / "bypass-e1.html"))
    assert "The report cannot be read." in page
    assert str(broken) in page
    assert "Finished 2026-01-02" in text_of(parsed(tmp_path / "report" / "lcn.html")).replace(
        "Finished2026", "Finished 2026"
    )
    states = {
        each["experiment"]: each["state"]
        for group in json.loads((tmp_path / "report" / "report.json").read_bytes())["documents"]
        for each in group["experiments"]
    }
    assert (states["lcn"], states["bypass-e1"], states["bypass-e2"]) == ("run", "damaged", "not run")


def test_a_figure_that_is_gone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = keep(tmp_path, named("lcn")) / "figures" / "cost.svg"
    picture.unlink()
    assert report(tmp_path, "lcn", "--html") == 1
    assert str(picture) in capsys.readouterr().err
    page = parsed(tmp_path / "report" / "lcn.html")
    assert str(picture) in text_of(page)
    assert not list(page.iter("img"))


def test_a_report_cannot_publish_other_files_of_the_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret.svg"
    secret.write_text("<svg/>")
    folder = keep(tmp_path / "out", named("lcn"))
    kept = json.loads((folder / "report.json").read_bytes())
    for address in ("../../../secret.svg", str(secret)):
        kept["figures"][0]["svg"] = address
        (folder / "report.json").write_text(json.dumps(kept))
        (missing,) = write_site(collect(tmp_path / "out", [named("lcn")]), tmp_path / "site")
        assert "no file of the report" in missing
        assert not list((tmp_path / "site").rglob("secret*"))


def test_reports_of_an_earlier_version_can_be_shown(tmp_path: Path) -> None:
    folder = keep(tmp_path, named("lcn"))
    kept = json.loads((folder / "report.json").read_bytes())
    for new in ("version", "finished", "runs"):
        del kept[new]
    del kept["figures"][0]["csv"]
    kept["checks"].pop()
    (folder / "report.json").write_text(json.dumps(kept))
    write_site(collect(tmp_path, [named("lcn")]), tmp_path / "site")
    page = text_of(parsed(tmp_path / "site" / "lcn.html"))
    assert "not written down" in page
    assert "the report is older than this check" in page


def test_the_command_writes_the_site_and_says_where(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(stored, "--all", "--html", "--to", str(tmp_path / "site")) == 0
    said = capsys.readouterr().out
    assert str(tmp_path / "site" / "index.html") in said
    assert all(document.name in said for document in DOCUMENTS)
    assert report(stored, "lcn", "thyme-th1", "lcn", "--html", "--to", str(tmp_path / "site"), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["experiment"] for each in found["experiments"]] == ["lcn", "thyme-th1"]
    assert found["site"] == str(tmp_path / "site" / "index.html")
    assert found["missing"] == []
    assert (tmp_path / "site" / "thyme-th1.html").exists()


def test_all_verdicts_are_one_document_with_what_was_not_run(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(stored, "--all", "--json") == 0
    found = {each["experiment"]: each for each in json.loads(capsys.readouterr().out)["experiments"]}
    assert list(found) == [each.name for each in EXPERIMENTS]
    assert {check["verdict"] for check in found["bypass-e2"]["checks"]} == {"not run"}
    assert found["bypass-e2"]["page"] is None
    page = parsed(Path(found["lcn"]["page"]))
    assert not list(page.iter("script"))
    assert not [link for link in page.iter("a") if not str(link.get("href")).startswith("#")], "it stands alone"
    (image,) = page.iter("img")
    assert str(image.get("src")).startswith("data:image/png;base64,")


def test_an_empty_folder_is_an_error_that_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert report(folder, "--all", "--html") == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert f"nearcast experiment run all --quick --out {folder}" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name at least one experiment, or say --all"),
        (["--html"], "name at least one experiment, or say --all"),
        (["lcn", "--all"], "not both"),
        (["lcn", "--to", "there"], "needs --html"),
        (["lcn", "steam-st", "--html"], "did you mean 'steam-st"),
        (["--all", "--longer", "2"], "--longer is for quick runs"),
    ],
)
def test_wrong_usage_is_status_2(
    arguments: list[str], said: str, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(stored, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_experiments_of_no_known_document_have_their_place(tmp_path: Path) -> None:
    other = replace(named("lcn"), name="other", document="a letter")
    keep(tmp_path, other)
    write_site(collect(tmp_path, [other]), tmp_path / "site")
    assert "Others" in [text_of(heading) for heading in parsed(tmp_path / "site" / "index.html").iter("h2")]
    assert campaign.ALL not in {each.name for each in EXPERIMENTS}
