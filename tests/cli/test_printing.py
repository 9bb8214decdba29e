"""Results go to stdout as programs read them; what people may want to know goes to stderr."""

import json
import subprocess
import sys

import pytest

from nearcast.cli.printing import PLAIN_WIDTH, console, say_json, tell
from nearcast.cli.progress import progress_bar


def test_a_document_is_indented_and_one_of_many_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"name": "Zürich", "none": None, "values": [1, 2.5]}
    say_json(document)
    assert capsys.readouterr().out == json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    say_json(document, one_line=True)
    line = capsys.readouterr().out
    assert json.loads(line) == document
    assert line.count("\n") == 1


def test_json_is_utf8_in_a_terminal_of_any_language() -> None:
    program = "from nearcast.cli.printing import say_json; say_json('Zürich', one_line=True)"
    said = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert said.stdout.decode() == '"Zürich"\n'


def test_what_is_told_is_not_in_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    tell("1 of 3")
    assert capsys.readouterr() == ("", "1 of 3\n")


def test_rows_of_tables_stay_whole_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert console().width == console(stderr=True).width == PLAIN_WIDTH
    with progress_bar("{task.completed:.0f} of {task.total:.0f}") as bar:
        bar.update(bar.add_task("counting", total=3), completed=1)
        assert bar.disable
    assert capsys.readouterr() == ("", "")
