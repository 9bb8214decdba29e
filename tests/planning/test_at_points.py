"""Schemes by place."""

import pytest

from nearcast.planning.at_points import SchemesByPlace


def test_whoever_plans_by_place_has_to_say_which_scheme_is_right_where() -> None:
    with pytest.raises(TypeError, match="_right"):
        SchemesByPlace()  # type: ignore[abstract]
