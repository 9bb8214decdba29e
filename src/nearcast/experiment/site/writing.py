"""Writing the site: all of it, or nothing."""

from __future__ import annotations

import base64
import csv
import io
import secrets
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidInput, InvalidRecord
from nearcast.experiment.reports import FigureFiles
from nearcast.experiment.site.experiment_page import Around, Shown, experiment_page
from nearcast.experiment.site.layout import INDEX, SCRIPT, STATEMENTS, STYLE, Link, asset
from nearcast.experiment.site.overview import by_document, index_page, page_of, part_of, statements_page
from nearcast.experiment.site.stored import Stored, counted
from nearcast.files import write_whole

SUMMARY: Final = "report.json"
"""The verdicts for programs; and what shows that a folder is a report, which another may replace."""

PAGE: Final = "report.html"
_MADE_BY: Final = "nearcast experiment report"


def write_site(found: Sequence[Stored], site: Path, *, tell: Callable[[], None] = lambda: None) -> list[str]:
    """Put the pages there, in place of an earlier report; what was missing of the figures, each in one sentence.

    Whatever goes wrong, the folder is as it was.
    """
    site = site.resolve()  # "." has no name beside which a draft could lie
    _check_free(site)
    draft = site.with_name(f".{site.name}.{secrets.token_hex(8)}")
    try:
        draft.mkdir(parents=True)
        missing = _write(found, draft, tell)
        _exchange(draft, site)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError):
            raise InvalidRecord(f"the report cannot be written to {site}: {error.strerror or error}") from error
        raise
    return missing


def write_page(stored: Stored) -> Path | None:
    """One page beside the report, with its figures within; the path of the file, or none if there is no report."""
    if stored.report is None or stored.folder is None:
        return None
    figures = [_embedded(stored.folder, figure) for figure in stored.report.figures]
    path = stored.folder / PAGE
    write_whole(path, experiment_page(stored, figures, None))
    return path


def summary(found: Sequence[Stored]) -> dict[str, Any]:
    """How many statements have which verdict: of all, of each document, and of each experiment."""
    return {
        "made_by": _MADE_BY,
        "version": version("nearcast"),
        "verdicts": counted(found),
        "documents": [
            {
                "document": document.name,
                "verdicts": counted(group),
                "experiments": [
                    {
                        "experiment": each.name,
                        "title": each.experiment.title,
                        "state": "damaged" if each.damaged else "run" if each.report else "not run",
                        "verdicts": counted([each]),
                        "checks": {check.id: check.verdict for check in each.checks},
                        "page": page_of(each.name),
                        "command": each.command,
                    }
                    for each in group
                ],
            }
            for document, group in by_document(found)
        ],
    }


def _write(found: Sequence[Stored], site: Path, tell: Callable[[], None]) -> list[str]:
    ordered = [(document, each) for document, group in by_document(found) for each in group]
    links = [Link(page_of(each.name), each.name) for _, each in ordered]
    missing = []
    for number, (document, each) in enumerate(ordered):
        figures = [_copied(each, figure, site) for figure in each.report.figures] if each.report else []
        missing += [f"{each.name}: {figure.missing}" for figure in figures if figure.missing]
        around = Around(
            Link(f"{INDEX}#{part_of(document)}", document.name),
            links[number - 1] if number else None,
            links[number + 1] if number + 1 < len(links) else None,
        )
        _text(site / page_of(each.name), experiment_page(each, figures, around))
        tell()
    _text(site / INDEX, index_page(found))
    _text(site / STATEMENTS, statements_page(found))
    for name in (STYLE, SCRIPT):
        _text(site / name, asset(name))
    (site / SUMMARY).write_bytes(msgspec.json.format(msgspec.json.encode(summary(found)), indent=1) + b"\n")
    return missing


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _copied(stored: Stored, figure: FigureFiles, site: Path) -> Shown:
    """The figure's files beside the pages; a file that is not there does not keep the others from being shown."""
    assert stored.folder is not None
    target = PurePosixPath("figures", stored.name)
    try:
        svg = _read(stored.folder, figure.svg)
        table = _read(stored.folder, figure.csv) if figure.csv else None
    except InvalidRecord as error:
        return Shown(figure.name, figure.caption, "", (), (), str(error))
    (site / target).mkdir(parents=True, exist_ok=True)
    links = []
    for name, word, content in ((figure.svg, "SVG", svg), (figure.csv, "numbers as CSV", table)):
        if content is not None:
            address = target / PurePosixPath(name).name
            (site / address).write_bytes(content)
            links.append(Link(str(address), word))
    return Shown(figure.name, figure.caption, links[0].target, tuple(links), _rows(table))


def _embedded(folder: Path, figure: FigureFiles) -> Shown:
    image = base64.b64encode(_read(folder, figure.png)).decode()
    table = _read(folder, figure.csv) if figure.csv else None
    return Shown(figure.name, figure.caption, f"data:image/png;base64,{image}", (), _rows(table))


def _read(folder: Path, name: str) -> bytes:
    # A report that somebody else made must not make us publish any file of this machine.
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidRecord(f"{path} is no file of the report; run the experiment again")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRecord(f"{path} cannot be read ({error.strerror}); run the experiment again to draw it") from None


def _rows(table: bytes | None) -> tuple[tuple[str, ...], ...]:
    if table is None:
        return ()
    return tuple(map(tuple, csv.reader(io.StringIO(table.decode(errors="replace")))))


def _check_free(site: Path) -> None:
    if not site.exists():
        return
    if not site.is_dir():
        raise InvalidInput(f"{site} is a file; name a folder for the report")
    if any(site.iterdir()) and not _is_report(site):
        raise InvalidInput(f"{site} has other things in it than a report; name another folder, or one that is empty")


def _is_report(site: Path) -> bool:
    try:
        found = msgspec.json.decode((site / SUMMARY).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return False
    return isinstance(found, dict) and found.get("made_by") == _MADE_BY


def _exchange(draft: Path, site: Path) -> None:
    if not site.exists():
        draft.rename(site)
        return
    old = draft.with_name(f"{draft.name}.old")
    site.rename(old)
    try:
        draft.rename(site)
    except BaseException:
        if site.exists():  # somebody else was faster
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(site)
        raise
    shutil.rmtree(old, ignore_errors=True)
