"""What the documents show is true: examples run and print what they say, filters parse, commands and links exist."""

import re
from pathlib import Path

import pytest
from tests.documents import ROOT, blocks, check_examples

from nearcast.cli import main
from nearcast.model import values
from nearcast.model.cql2 import parse_addressing
from nearcast.overlay.values import registry

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MADE_FROM_CODE = {"cli.md", "settings.md", "http.md"}
"""Pages of the site (tests/test_site.py), which are no files of docs."""

COMMAND = re.compile(r"\b(make|nearcast) ([a-z][a-z -]*)")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TEST_NAME = re.compile(r"`(test_\w+)`")

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())


@every_document
def test_python_blocks_run_and_print_the_text_block_that_follows(
    document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in ("_types", "_by_python_type"):  # what an example registers goes with it
        monkeypatch.setattr(values, table, dict(getattr(values, table)))
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    check_examples(document, "python", "text")


@every_document
def test_every_filter_shown_can_be_read(document: Path) -> None:
    for _, code in blocks(document, "sql"):
        for line in code.splitlines():
            if line and not line.startswith("--"):
                parse_addressing(line.split(" -- ")[0].strip(), now=0)


@every_document
def test_every_command_shown_exists(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = [line.split("#")[0] for _, code in blocks(document, "sh") for line in code.splitlines()]
    shown += re.findall(r"`([^`\n]+)`", document.read_text())
    for program, rest in (command for text in shown for command in COMMAND.findall(text)):
        words = [word for word in rest.split() if not word.startswith("-")]
        if program == "make":
            assert words[0] in targets, f"make {rest}"
            continue
        assert main([*words, "--help"]) == 0, f"nearcast {rest}"
        printed = capsys.readouterr().out
        assert all(option in printed for option in rest.split() if option.startswith("-"))


@every_document
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text()):
        assert (document.parent / target).exists() or (document.parent / target).name in MADE_FROM_CODE, target


@every_document
def test_every_test_that_is_named_exists(document: Path) -> None:
    known = {
        name for path in (ROOT / "tests").rglob("*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert set(TEST_NAME.findall(document.read_text())) <= known


def test_every_decision_that_is_tested_is_explained() -> None:
    tested = re.findall(r"def (test_\w+)", (ROOT / "tests/model/test_decisions.py").read_text())
    assert set(tested) <= set(TEST_NAME.findall((ROOT / "docs/delivery.md").read_text()))


def test_the_readme_shows_one_example_and_its_picture() -> None:
    readme = ROOT / "README.md"
    [(_, code)] = blocks(readme, "python")
    assert len([line for line in code.splitlines() if line]) == 10, "ten lines"
    assert "docs/images/delivery.svg" in readme.read_text()
