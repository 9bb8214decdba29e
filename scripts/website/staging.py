"""The pages as Zensical is to see them, in a folder of their own.

Documents link to each other, and to files of the repository, as they lie there; so they can be read where they are.  In the site the
documents of the root are pages like the others, and source files that are linked to are shown as texts.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from scripts.website.generated import generated_pages
from scripts.website.notebooks import as_markdown

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
OF_THE_ROOT: Final = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
_FURTHER: Final = "    # What stands nowhere else comes here.\n"
_PAGE: Final = re.compile(r'"([\w/-]+\.md)"')
_LINK: Final = re.compile(r"(!?\[[^\]]*\]|\[!\[[^\]]*\]\([^)]*\)\])\(([^)#:\s]+)(#[^)]*)?\)")
_FENCE: Final = re.compile(r"^( *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def stage(folder: Path) -> None:
    """Everything that the site consists of, in this folder and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    sources = [path for path in sorted(DOCS.rglob("*")) if path.is_file()]
    sources += [ROOT / name for name, page in OF_THE_ROOT.items() if not (DOCS / page).exists()]
    for source in sources:
        target = folder / page_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(relinked(source.read_text(), source, folder))
        elif source.suffix == ".ipynb":
            shutil.copyfile(source, folder / source.relative_to(DOCS))
            target.write_text(relinked(as_markdown(source), source, folder))
        else:
            shutil.copyfile(source, target)
    for page, text in generated_pages().items():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(text)


def staged_settings(pages: Path) -> str:
    """zensical.toml, where a page that it does not name stands behind the others: new ones need not be registered."""
    text = (ROOT / "zensical.toml").read_text().replace('paths = ["src"]', f'paths = ["{ROOT / "src"}"]')
    named = set(_PAGE.findall(text))
    there = [path.relative_to(pages).as_posix() for path in sorted(pages.rglob("*.md"))]
    return text.replace(_FURTHER, "".join(f'    "{page}",\n' for page in there if page not in named))


def page_of(source: Path) -> Path:
    """Where a file of the repository is in the site."""
    if source.is_relative_to(DOCS):
        inside = source.relative_to(DOCS)
        return inside.with_suffix(".md") if source.suffix == ".ipynb" else inside
    name = source.relative_to(ROOT).as_posix()
    return Path(OF_THE_ROOT.get(name) or f"source/{name}.txt")


def relinked(text: str, source: Path, folder: Path) -> str:
    """The page with its links as they are in the site; code is left as it is."""
    here = (folder / page_of(source)).parent

    def link(found: re.Match[str]) -> str:
        label, target, anchor = found.groups()
        meant = Path(os.path.normpath(source.parent / target))
        if meant.is_dir():
            return label.removeprefix("[").removesuffix("]")
        there = folder / page_of(meant)
        if there.is_relative_to(folder / "source") and meant.is_file():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(meant, there)
        return f"{label}({os.path.relpath(there, here)}{anchor or ''})"

    parts = _FENCE.split(text)
    return "".join(part if part.lstrip().startswith("```") else _LINK.sub(link, part) for part in parts)
