"""From the sources to a site that was checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.website.finishing import broken_links, make_self_contained
from scripts.website.staging import ROOT, stage, staged_settings

BUILT: Final = ROOT / "build" / "website"


def build(folder: Path) -> list[str]:
    """Build it in this folder; what is wrong with it, which should be nothing."""
    stage(folder / "docs")
    settings = folder / "zensical.toml"
    settings.write_text(staged_settings(folder / "docs"))
    program = Path(sys.executable).with_name("zensical")
    built = subprocess.run(
        [program, "build", "--clean", "--strict", "--config-file", settings],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        return (built.stdout + built.stderr).splitlines()
    make_self_contained(folder / "site")
    return broken_links(folder / "site")
