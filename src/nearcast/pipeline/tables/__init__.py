"""The tables of the pipeline: bronze as recorded, silver cleaned, gold measured; docs/pipeline.md says what is in them."""

from nearcast.pipeline.tables.bronze import BronzeFile, about, bronze_files, check_lake, read_bronze, read_lake
from nearcast.pipeline.tables.gold import GOLD, GoldTable, measure_all, read_gold
from nearcast.pipeline.tables.silver import Refinement, read_aside, read_duplicates, read_silver, refine, refine_all
from nearcast.pipeline.tables.store import Counts, DataFile, Version, Warehouse
from nearcast.pipeline.tables.upkeep import Compaction, clean, compact, retain, tables_of_silver

__all__ = [
    "GOLD",
    "BronzeFile",
    "Compaction",
    "Counts",
    "DataFile",
    "GoldTable",
    "Refinement",
    "Version",
    "Warehouse",
    "about",
    "bronze_files",
    "check_lake",
    "clean",
    "compact",
    "measure_all",
    "read_aside",
    "read_bronze",
    "read_duplicates",
    "read_gold",
    "read_lake",
    "read_silver",
    "refine",
    "refine_all",
    "retain",
    "tables_of_silver",
]
