"""All commands with all their options, as typer knows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, get_args

import typer

from nearcast.cli.app import app

HEAD: Final = """\
# The command line

Every command answers `--help`. Exit status 0 is success, 1 a failure with one line on stderr, 2 wrong usage, 130 an interruption (Ctrl-C),
143 a SIGTERM. `--debug`, anywhere on the line, shows the traceback of a failure. This page is made from the code.
"""
_DOCUMENT: Final = re.compile(r"docs/([\w-]+\.md)")


def command_line() -> str:
    """The page."""
    return "\n".join([HEAD, *_command("nearcast", typer.main.get_command(app))])


def _command(path: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    if " " in path:
        yield f"{'#' * (path.count(' ') + 1)} `{path}`\n"
        yield _prose(command.help or "") + "\n"
    shown = [each for each in command.params if not each.hidden and each.name != "help"]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    if " " in path and (not inner or arguments):
        names = " ".join(_argument(each) for each in arguments)
        yield f"```text\n{' '.join(f'{path} {names} [OPTIONS]'.split())}\n```\n"
    if shown:
        yield "| | |\n|---|---|"
        for each in arguments:
            yield f"| `{_argument(each)}` | {_meaning(each)} |"
        for each in options:
            yield f"| {_names(each)} | {_meaning(each)} |"
        yield ""
    for name, each in sorted(inner.items()):
        if not each.hidden:
            yield from _command(f"{path} {name}", each)


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name += "..." if argument.nargs == -1 else ""
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    value = "" if _is_flag(option) else f" {option.metavar or _kind(option)}"
    return ", ".join(f"`{name}{value}`".replace("|", "\\|") for name in (*option.opts, *option.secondary_opts))


def _kind(option: Any) -> str:
    kind = option.type_descriptor.annotation
    kind = next(iter(get_args(kind)), kind)
    return {str: "TEXT", int: "INTEGER", float: "NUMBER"}.get(kind, getattr(kind, "__name__", "VALUE").upper())


def _is_flag(option: Any) -> bool:
    return bool(getattr(option, "is_flag", False))


def _meaning(parameter: Any) -> str:
    said = [_prose(parameter.help or "")]
    default = parameter.default
    if default is not None and not callable(default) and default not in (False, (), [], ""):
        said.append(f"Default: `{default}`.")
    if parameter.envvar:
        said.append(f"Or the environment variable `{parameter.envvar}`.")
    if getattr(parameter, "multiple", False) and "epeatable" not in said[0]:
        said.append("Repeatable.")
    return " ".join(filter(None, said)).replace("|", "\\|")


def _prose(text: str) -> str:
    """Help as it is written for a terminal; what it says of documents leads to them."""
    text = " ".join(text.replace("\b", "").split()) if "\n\n" not in text else text.strip()
    return _DOCUMENT.sub(r"[\1](../\1)", text.replace("<", "&lt;")).replace("*", "\\*")
