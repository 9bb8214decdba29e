"""The pipeline's settings: good for a laptop without a file, refused with the key where a file is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.errors import InvalidSettings
from nearcast.pipeline.settings import PipelineSettings, load

MINUTE = 60_000_000


def read(folder: Path, text: str) -> PipelineSettings:
    file = folder / "pipeline.toml"
    file.write_text(text)
    return load(file)


def test_without_a_file_all_cores_of_this_machine_work() -> None:
    settings = PipelineSettings()
    assert (settings.spark.master, settings.spark.remote, settings.spark.ui) == ("local[*]", None, True)
    assert settings.warehouse_folder == Path("nearcast-data/lake-warehouse")


def test_a_file_says_what_it_says_and_paths_count_from_it(tmp_path: Path) -> None:
    text = 'lake = "lake"\n[spark]\nmaster = "yarn"\ndriver_memory = "3 GiB"\n[spark.settings]\n"spark.executor.cores" = "4"\n'
    settings = read(tmp_path, f'{text}[tables]\nfuture = "1m"\nformat = "delta"\n')
    assert (settings.lake, settings.spark.master) == (tmp_path / "lake", "yarn")
    assert (settings.tables.future, settings.tables.format) == (MINUTE, "delta")
    assert settings.spark.settings == {"spark.executor.cores": "4"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[spark]\nmasters = 'local'", "spark.masters: there is no such key; did you mean 'master'?"),
        ("[table]\n", "table: there is no such key; did you mean 'tables'?"),
        (
            "[tables]\nformat = 'csv'",
            "tables.format: Invalid enum value 'csv'; possible: 'parquet', 'delta'",
        ),
        ("[spark]\nremote = 'localhost'", "is no address of Spark Connect; write sc://HOST:PORT"),
        ("[spark.settings]\nui = 'x'", "'ui' is no setting of Spark; their names begin with 'spark.'"),
        ("[spark]\ndriver_memory = 2", "2 is no size"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InvalidSettings) as refusal:
        read(tmp_path, text)
    assert str(refusal.value).startswith(str(tmp_path / "pipeline.toml"))
    assert complaint in str(refusal.value)


def test_the_command_line_goes_over_the_file(tmp_path: Path) -> None:
    settings = read(tmp_path, "[spark]\nremote = 'sc://there'")
    assert settings.changed(master="local[2]").spark.remote is None
    assert settings.changed(lake=Path("x")).spark.remote == "sc://there"
    with pytest.raises(InvalidSettings, match="two ways to Spark"):
        settings.changed(master="local", remote="sc://here")
