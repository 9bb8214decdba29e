"""The pictures of the live map: those that the script takes are there, small, and shown by a document."""

import importlib.util
import re
import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from tests.documents import ROOT

IMAGES: Final = ROOT / "docs" / "images"
SHOWN: Final = re.compile(r"!\[[^\]]*\]\(((?:docs/)?images/[^)]+)\)")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("screenshots", ROOT / "scripts" / "screenshots.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # its dataclasses look there
    found.loader.exec_module(module)
    return module


def size_of(picture: Path) -> tuple[int, int]:
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


def test_the_pictures_are_those_that_the_script_takes(script: ModuleType) -> None:
    assert {path.stem for path in IMAGES.glob("*.png")} == set(script.PICTURES)
    sizes = [(IMAGES / f"{name}.png").stat().st_size for name in script.PICTURES]
    assert max(sizes) < script.LARGEST
    assert sum(sizes) < script.LARGEST_TOGETHER
    for name in script.PICTURES:
        wanted = script.PHONE if name.endswith("phone") else script.DESKTOP
        width, height = size_of(IMAGES / f"{name}.png")
        assert width * wanted["height"] == height * wanted["width"], name


def test_every_picture_is_shown_somewhere_and_every_picture_shown_is_there(script: ModuleType) -> None:
    shown = set()
    for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in SHOWN.findall(document.read_text()):
            assert (document.parent / target).is_file(), f"{document.name}: {target}"
            shown.add(Path(target).stem)
    assert set(script.PICTURES) <= shown


def test_a_picture_is_reduced_until_it_is_small_enough(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from PIL import Image

    noise = Image.effect_noise((200, 200), 80).convert("RGB")
    large = io.BytesIO()
    noise.save(large, "PNG")
    first = len(script.reduced(large.getvalue()))
    monkeypatch.setattr(script, "LARGEST", first)
    assert len(script.reduced(large.getvalue())) < first
    monkeypatch.setattr(script, "LARGEST", 100)
    with pytest.raises(SystemExit, match="100 are allowed"):
        script.reduced(large.getvalue())


def test_a_reduced_picture_has_the_colours_that_it_had(script: ModuleType) -> None:
    import io

    import numpy as np
    from PIL import Image

    x, y = np.meshgrid(np.arange(400), np.arange(400))
    shades = np.stack([10 + x / 20 + y / 40, 17 + x / 16, 30 + y / 8], -1).astype(
        np.uint8
    )  # as a dark surface has them
    shades[:40] = np.random.default_rng(7).integers(0, 256, (40, 400, 3))
    png = io.BytesIO()
    Image.fromarray(shades).save(png, "PNG")
    small = Image.open(io.BytesIO(script.reduced(png.getvalue()))).convert("RGB")
    assert np.abs(np.asarray(small, int) - shades).mean() < 6
