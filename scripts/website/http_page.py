"""HTTP as OpenAPI, which the broker makes from its routes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

HEAD: Final = """\
# HTTP

What a broker answers on `listen.http_port` (8080 unless said). Who asks is told by HTTP Basic; errors are problem documents (RFC 9457). A running
broker shows the same at `/schema`; [openapi.json](openapi.json) is for programs. [The broker](../broker.md#http) says what events look like here,
with examples. This page is made from the code.
"""


@cache
def openapi() -> dict[str, Any]:
    """The document of the routes, without a broker behind them."""
    from nearcast.broker.http.app import routes
    from nearcast.broker.settings import BrokerSettings

    nobody: Any = SimpleNamespace(settings=BrokerSettings())
    schema: dict[str, Any] = routes(nobody).openapi_schema.to_schema()
    return schema


def http_page() -> str:
    """The page."""
    operations = [
        (path, method, operation)
        for path, methods in openapi()["paths"].items()
        for method, operation in methods.items()
    ]
    return "\n".join([HEAD, *(line for each in operations for line in _operation(*each))])


def _operation(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"## `{method.upper()} {path}`\n"
    yield f"{operation['summary'].removesuffix('.')}.\n"
    if operation.get("description"):
        yield f"{operation['description']}\n"
    if operation.get("parameters"):
        yield "| parameter | | meaning |\n|---|---|---|"
        for parameter in operation["parameters"]:
            kind = parameter.get("schema", {})
            default = f"default `{kind['default']}`" if kind.get("default") is not None else ""
            yield f"| `{parameter['name']}` | {default} | {parameter.get('description', '')} |"
        yield ""
    takes = operation.get("requestBody", {}).get("content", {})
    if takes:
        yield f"Takes {', '.join(f'`{kind}`' for kind in takes)}.\n"
    yield "| answer | | |\n|---|---|---|"
    for status, answer in operation["responses"].items():
        kinds = ", ".join(f"`{kind}`" for kind in answer.get("content", {}))
        yield f"| {status} | {answer.get('description', '')} | {kinds} |"
    yield ""
