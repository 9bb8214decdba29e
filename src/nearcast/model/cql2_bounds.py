"""What a filter must not exceed before a parser sees it.

The parser of the ``cql2`` package recurses once for every nested term, and on a syntax error it tries every
bare parenthesis twice: deep input would end the process, twenty-four parentheses would keep it busy for a
minute.  So one pass over the text bounds the length, the nesting and that work, and refuses what is not
balanced.  The same pass sees the numbers as they were written; the parser makes floats of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from nearcast.errors import InvalidPredicate

LONGEST_TEXT: Final = 65_536
DEEPEST: Final = 64
MOST_NODES: Final = 200_000
MOST_WORK: Final = 2**19
"""Tokens, each counted twice as often for every bare parenthesis around it: about half a second at worst."""

_LARGEST_BITS: Final = 1023  # what a float can still hold, more or less exactly
_TOKEN: Final = re.compile(
    r"""(?P<string>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")|(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"""
    r"""|(?P<word>[^\W\d][\w.:]*)|(?P<open>\()|(?P<close>\))|(?P<comma>,)|(?P<operator><>|<=|>=|!=|[-+*/%^=<>])|(?P<other>\S)""",
)
# What wraps one more layer around what follows or precedes it, and what starts afresh.
_NESTING_WORDS: Final = frozenset({"not", "like", "in", "between", "is", "div"})
_KEYWORDS: Final = _NESTING_WORDS | {"and", "or"}


class _Level:
    """What is known about one level of parentheses."""

    def __init__(self, opened: int, *, bare: bool) -> None:
        self.opened = opened
        self.bare = bare
        self.run = 0  # operators since the last AND, OR or comma, each of which may nest
        self.between = False  # the next AND belongs to a BETWEEN


def check_text(text: str) -> None:
    """Raise ``InvalidPredicate`` for a text that the parser should not see."""
    if len(text) > LONGEST_TEXT:
        raise InvalidPredicate(f"the filter has {len(text)} characters; at most {LONGEST_TEXT} are read")
    levels = [_Level(0, bare=False)]
    nested = work = bare = 0
    before = ""
    for match in _TOKEN.finditer(text):
        kind, token, at = match.lastgroup, match[0], match.start()
        word = token.lower() if kind == "word" else ""
        if kind == "open":
            levels.append(_Level(at, bare=not before or before in _KEYWORDS))
            nested += 1
            bare += levels[-1].bare
        elif kind == "close":
            if len(levels) == 1:
                raise InvalidPredicate(f"the filter closes a parenthesis at {position(text, at)} that it never opened")
            closed = levels.pop()
            nested -= 1 + closed.run
            bare -= closed.bare
        elif kind == "number":
            _check_number(text, token, at)
        else:
            nested += _count(levels[-1], kind, word)
        work += 1 << min(bare, 32)
        if nested > DEEPEST:
            raise InvalidPredicate(
                f"the filter nests more than {DEEPEST} terms in each other at {position(text, at)}; write it flatter"
            )
        if work > MOST_WORK:
            raise InvalidPredicate(
                f"the filter puts too much into parentheses within parentheses at {position(text, at)} (more than "
                f"{MOST_WORK} steps to read); leave out those that AND and OR do not need, or send CQL2 JSON",
            )
        before = word if kind == "word" else "name" if kind == "name" else ""
    if len(levels) > 1:
        raise InvalidPredicate(
            f"the filter never closes the parenthesis that it opens at {position(text, levels[-1].opened)}"
        )


def _count(level: _Level, kind: str | None, word: str) -> int:
    """How the nesting changes with an operator, a keyword or a comma."""
    if kind == "operator" or word in _NESTING_WORDS:
        level.between = level.between or word == "between"
        level.run += 1
        return 1
    if word == "and" and level.between:
        level.between = False
        return 0
    if kind == "comma" or word in ("and", "or"):
        run, level.run = level.run, 0
        return -run
    return 0


def _check_number(text: str, token: str, at: int) -> None:
    value = float(token)
    if not math.isfinite(value):
        raise InvalidPredicate(f"the number {_short(token)} at {position(text, at)} is too large; numbers are finite")
    if token.isdigit() and int(value) != int(token):
        raise InvalidPredicate(
            f"the number {token} at {position(text, at)} has too many digits for CQL2 text, which knows floats only; "
            "send the filter as CQL2 JSON, whose integers are exact",
        )


def check_tree(tree: Any) -> None:
    """Raise ``InvalidPredicate`` for a JSON tree that is too deep or too large to walk."""
    stack, nodes = [(tree, 0)], 0
    while stack:
        node, depth = stack.pop()
        nodes += 1
        if depth > 2 * DEEPEST:  # each term is an object with a list of arguments
            raise InvalidPredicate(f"the filter nests more than {DEEPEST} terms in each other; write it flatter")
        if nodes > MOST_NODES:
            raise InvalidPredicate(f"the filter has more than {MOST_NODES} parts")
        if isinstance(node, int) and node.bit_length() > _LARGEST_BITS:
            raise InvalidPredicate("the filter holds a number that is too large; numbers are finite")
        if isinstance(node, Mapping):
            stack.extend((child, depth + 1) for child in node.values())
        elif isinstance(node, (list, tuple)):
            stack.extend((child, depth + 1) for child in node)


def position(text: str, at: int) -> str:
    """Such as ``line 1, column 5``."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - (text.rfind(chr(10), 0, at) + 1) + 1}"


def _short(token: str) -> str:
    return token if len(token) <= 40 else token[:37] + "..."
