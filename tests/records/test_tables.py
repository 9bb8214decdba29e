"""The tables are a promise: named, documented, typed, and cheap to ask about."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from tests.child import loaded_by

from nearcast.errors import InvalidInput, UnknownName
from nearcast.records import TABLES, VERSION, Kind, RecordTable, arrow_schema, document, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "records.md"

every_table = pytest.mark.parametrize("each", TABLES, ids=lambda table: table.name)


def test_the_tables_are_these() -> None:
    assert [each.name for each in TABLES] == [
        *("positions", "reports", "late_reports", "clients", "contexts", "subscriptions"),
        *("events", "unpublished", "deliveries", "notifications", "gateways"),
        *("messages", "drops", "traffic", "energy", "hops", "transitions", "metrics"),
    ]


@every_table
def test_a_table_is_found_by_its_name(each: RecordTable) -> None:
    assert table(each.name) is each


def test_an_unknown_table_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(UnknownName, match=r"no record table 'evnts'; there are positions, reports, .*metrics"):
        table("evnts")


@every_table
def test_names_are_words_that_sql_and_python_take_as_they_are(each: RecordTable) -> None:
    reserved = {"from", "to", "order", "group", "select", "where", "table", "user", "timestamp"}
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in (each.name, *each.column_names))
    assert not reserved & set(each.column_names)
    assert len(set(each.column_names)) == len(each.columns)


def test_a_name_means_the_same_kind_of_thing_in_every_table() -> None:
    kinds: dict[str, set[Kind]] = {}
    for each in TABLES:
        for column in each.columns:
            kinds.setdefault(column.name, set()).add(column.kind)
    assert {name for name, found in kinds.items() if len(found) > 1} == set()


@every_table
def test_the_arrow_schema_says_what_the_columns_say(each: RecordTable) -> None:
    types = {
        Kind.INSTANT: pa.timestamp("us", tz="UTC"),
        Kind.WHOLE: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.NAME: pa.dictionary(pa.int32(), pa.string()),
        Kind.TEXTS: pa.list_(pa.string()),
        Kind.BYTES: pa.binary(),
    }
    schema = arrow_schema(each)
    assert [(field.name, field.type, field.nullable) for field in schema] == [
        (column.name, types[column.kind], column.nullable) for column in each.columns
    ]
    assert [field.metadata[b"description"].decode() for field in schema] == [
        column.description for column in each.columns
    ]
    assert schema.metadata == {b"nearcast.table": each.name.encode(), b"nearcast.version": str(VERSION).encode()}


@every_table
def test_what_may_be_left_out_may_be_null(each: RecordTable) -> None:
    assert all(column.nullable for column in each.columns[each.required :])


def test_the_receivers_of_an_event_stand_in_its_row() -> None:
    assert arrow_schema(table("events")).field("receivers").type == pa.list_(pa.string())


def test_the_document_is_up_to_date() -> None:
    """If not: ``python -m nearcast.records.document docs/records.md``."""
    text = DOCUMENT.read_text()
    assert document.up_to_date(text) == text
    assert f"The version of the schemas ({VERSION})" in text


@every_table
def test_the_document_shows_every_column(each: RecordTable) -> None:
    part = document.section().partition(f"### {each.name}\n")[2].partition("\n### ")[0]
    assert each.description in part
    assert re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) == list(each.column_names)
    assert all(f"`{choice}`" in part for column in each.columns for choice in column.choices)


def test_a_document_without_the_section_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no section between"):
        document.up_to_date("# Records\n")


def test_importing_the_records_loads_neither_pyarrow_nor_numpy() -> None:
    assert not {"pyarrow", "numpy", "pandas"} & loaded_by("import nearcast.records")
