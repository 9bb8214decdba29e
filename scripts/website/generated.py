"""Pages that are made from the code: the command line, the settings, HTTP."""

from __future__ import annotations

import json

from scripts.website.command_line import command_line
from scripts.website.http_page import http_page, openapi
from scripts.website.settings_page import settings_page


def generated_pages() -> dict[str, str]:
    """File names, from the folder of the pages on, and what is in them."""
    return {
        "reference/cli.md": command_line(),
        "reference/settings.md": settings_page(),
        "reference/http.md": http_page(),
        "reference/openapi.json": json.dumps(openapi(), indent=2) + "\n",
    }
