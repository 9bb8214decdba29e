"""The table format that the settings ask for, besides our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearcast.pipeline.settings import PipelineSettings


def check_format(settings: PipelineSettings) -> None:
    if settings.tables.format == "delta":
        from nearcast.pipeline.tables.delta import check_delta

        check_delta()


def follow_format(settings: PipelineSettings) -> None:
    """Have the other format say the same as ours."""
    if settings.tables.format == "delta":
        from nearcast.pipeline.tables.delta import follow
        from nearcast.pipeline.tables.store import Warehouse

        follow(Warehouse(settings.warehouse_folder))
