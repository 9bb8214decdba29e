"""The command line keeps its promises: exit status, one line for a failure, a quick answer."""

import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from nearcast.cli import app as command_line
from nearcast.cli import main
from nearcast.errors import NearcastError, SetupError

COMMAND = Path(sys.executable).with_name("nearcast")


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Add a command ``fail`` that fails in this way."""
    monkeypatch.setattr(command_line.app, "registered_commands", [*command_line.app.registered_commands])

    @command_line.app.command()
    def fail() -> None:
        raise error


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"nearcast {version('nearcast')}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["bench", "--help"], ["bench", "match", "--help"], ["demo", "-h"], ["simulate", "-h"]]
)
def test_everything_has_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert "Usage: nearcast" in output.out
    assert output.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bench"],
        ["nonsense"],
        ["--nonsense"],
        ["demo", "--nonsense"],
        ["bench", "match", "--clients", "many"],
        ["demo", "too much"],
    ],
)
def test_wrong_usage_is_status_2_and_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("nearcast: ")
    assert output.err.count("\n") == 1


def test_failure_is_status_1_and_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failing(monkeypatch, ZeroDivisionError("one thing;\n  told at length"))
    assert main(["fail"]) == 1
    assert capsys.readouterr().err == "nearcast: ZeroDivisionError: one thing; told at length (--debug shows where)\n"


def test_several_problems_of_a_file_are_one_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, SetupError("no Java here\n  and no   disk"))
    assert main(["fail"]) == 1
    assert capsys.readouterr().err == "nearcast: no Java here\nnearcast: and no disk\n"


def test_unforeseen_failure_names_its_kind_and_the_way_to_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, ZeroDivisionError("oh"))
    assert main(["fail"]) == 1
    assert capsys.readouterr().err == "nearcast: ZeroDivisionError: oh (--debug shows where)\n"


@pytest.mark.parametrize("arguments", [["--debug", "fail"], ["fail", "--debug"]])
def test_debug_lets_the_failure_through_with_its_traceback(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, SetupError("no Java here"))
    with pytest.raises(NearcastError, match="no Java here"):
        main(arguments)


def test_interruption_is_status_130_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert main(["fail"]) == 130
    assert capsys.readouterr().err == "nearcast: interrupted\n"


def test_installed_command_turns_the_status_into_its_exit_status() -> None:
    answer = subprocess.run([COMMAND, "nonsense"], capture_output=True, text=True, timeout=60, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)


def test_reader_that_leaves_early_gets_no_complaint() -> None:
    with subprocess.Popen([COMMAND, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def test_start_imports_nothing_slow() -> None:
    slow = {"numba", "numpy", "shapely", "pyarrow", "pyspark", "pandas", "asyncio", "nearcast.model"}
    script = (
        "import sys; from nearcast.cli import main; status = main(['--version']); "
        f"print(sorted({slow!r} & set(sys.modules))); sys.exit(status)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


def test_statuses_are_the_agreed_ones() -> None:
    assert command_line.FAILURE == 1
    assert command_line.INTERRUPTED == 128 + signal.SIGINT
    assert command_line.TERMINATED == 128 + signal.SIGTERM
