"""What the pipeline is told: ``PipelineSettings``, read from a TOML file by ``load``; docs/pipeline.md shows one.

Every setting has a default, made for a laptop: all its cores, two gigabytes, nothing that other machines can reach.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from nearcast.errors import InvalidSettings
from nearcast.settings_files import Duration, Section, Size, read_settings

TableFormat = Literal["parquet", "delta"]


class SparkSettings(Section, frozen=True, kw_only=True):
    master: str = "local[*]"
    """``local[N]``, ``spark://HOST:PORT``, ``k8s://...`` or ``yarn``."""

    remote: str | None = None
    """``sc://HOST:PORT``: the jobs run there, over Spark Connect, and ``master`` counts for nothing."""

    driver_memory: Size = Size.of("2 GiB")
    shuffle_partitions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Twice the cores of this machine, unless said; Spark joins those that turn out small."""

    ui: bool = True
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Anything else that Spark knows, such as ``"spark.executor.memory" = "8g"``; it goes over all defaults."""

    def __post_init__(self) -> None:
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise InvalidSettings(f"remote {self.remote!r} is no address of Spark Connect; write sc://HOST:PORT")
        for name in self.settings:
            if not name.startswith("spark."):
                raise InvalidSettings(f"settings: {name!r} is no setting of Spark; their names begin with 'spark.'")


class TableSettings(Section, frozen=True, kw_only=True):
    format: TableFormat = "parquet"
    """``delta``: others may read the tables as Delta tables, too; it needs the package deltalake."""

    file_size: Size = Size.of("128 MiB")
    """So large are files after compaction."""

    future: Duration = Duration.of("5m")
    """So far may clocks be ahead before a time counts as wrong."""

    retention: Duration = Duration.of("365d")
    """Older days are deleted from the warehouse by ``retain``."""

    grace: Duration = Duration.of("1h")
    """So long do files that are no longer part of a table stay for those who still read them."""


class KafkaSettings(Section, frozen=True, kw_only=True):
    servers: str = ""
    """``HOST:9092``, several with commas between them; empty: there is no Kafka."""

    prefix: str = "nearcast."
    """The topic of a record table is this and the name of the table."""

    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Anything else that the client of Kafka (librdkafka) knows, such as ``"security.protocol" = "SASL_SSL"``."""

    def client(self) -> dict[str, str]:
        """What the client of Kafka is told."""
        if not self.servers:
            raise InvalidSettings(
                'where is Kafka? Say it in the settings file (--config): [kafka] servers = "HOST:9092"'
            )
        return {"bootstrap.servers": self.servers, **self.settings}


class PipelineSettings(Section, frozen=True, kw_only=True):
    lake: Path = Path("nearcast-data/lake")
    """The broker's lake, or the folder of a recording."""

    warehouse: Path | None = None
    """The folder for silver and gold; without one, a folder beside the lake: ``lake-warehouse``."""

    spark: SparkSettings = SparkSettings()
    tables: TableSettings = TableSettings()
    kafka: KafkaSettings = KafkaSettings()

    @property
    def warehouse_folder(self) -> Path:
        return self.warehouse or self.lake.with_name(f"{self.lake.name}-warehouse")

    def changed(
        self,
        *,
        lake: Path | None = None,
        warehouse: Path | None = None,
        master: str | None = None,
        remote: str | None = None,
    ) -> PipelineSettings:
        """The same with what the command line says instead."""
        if master is not None and remote is not None:
            raise InvalidSettings("--master and --remote are two ways to Spark; give one of them")
        spark = msgspec.structs.replace(
            self.spark,
            master=self.spark.master if master is None else master,
            # Whoever names a master on the command line does not want the remote of the file.
            remote=(self.spark.remote if master is None else None) if remote is None else remote,
        )
        spark.__post_init__()
        return msgspec.structs.replace(
            self,
            spark=spark,
            lake=self.lake if lake is None else lake,
            warehouse=self.warehouse if warehouse is None else warehouse,
        )


def load(path: Path | str) -> PipelineSettings:
    """Read a settings file."""
    return read_settings(Path(path), PipelineSettings)
