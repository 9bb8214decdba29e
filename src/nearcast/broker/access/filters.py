"""When one topic filter allows another: everything that the second matches, the first matches too.

Overlap would not do: whoever may read ``a/b`` may not therefore subscribe to ``a/+``, and a subscription that is cut down
silently would look as if there were nothing to hear.
"""

from __future__ import annotations


def filter_covers(outer: str, inner: str) -> bool:
    """Whether every topic that matches the valid filter ``inner`` matches ``outer`` as well."""
    wide, narrow = outer.split("/"), inner.split("/")
    if narrow == ["#"]:
        narrow = ["+", "#"]  # the same: a topic has at least one level
    # A wildcard in the first level leaves out the topics that begin with $ (OASIS MQTT 5.0, 4.7.2).
    if narrow[0].startswith("$") and wide[0] in ("+", "#"):
        return False
    for position, level in enumerate(wide):
        if level == "#":  # also the level above: so one more than the levels compared so far may be missing
            return True
        if position >= len(narrow):
            return False
        given = narrow[position]
        # There are always more names than the ones written here: only a wildcard holds all that a wildcard holds.
        if given == "#" or level not in ("+", given):
            return False
    return len(wide) == len(narrow)
