"""The package ``bands``, built and installed as anybody would, into a folder of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearcast.filtering import registry

BANDS = Path(__file__).parent / "bands"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    uv = str(Path(sys.executable).with_name("uv"))
    how = ["--quiet", "--offline", "--no-deps", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([uv, "pip", "install", *how, "--target", str(folder), str(BANDS)], check=True)
    return folder


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder of packages that this process sees, and those that it starts."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    registry.look_again()
    yield folder
    monkeypatch.undo()
    registry.look_again()


@pytest.fixture
def bands(installed: Path, packages: Path) -> None:
    for part in installed.iterdir():
        (packages / part.name).symlink_to(part)
    registry.look_again()
