"""The public names are these, each is documented, and asking for none of them costs next to nothing."""

import inspect
from importlib.metadata import version

import pytest
from tests.child import loaded_by, run_python

import nearcast

NAMES = {
    *("Area", "Box", "Circle", "Outline", "Point", "Polygon", "Rectangle"),
    *("area_from_geojson", "area_to_geojson", "distance"),
    *("TemporalPredicate", "TimeFrame", "duration", "instant"),
    *("AttributeType", "OneOf", "Path", "Range", "Subtree", "register_type"),
    *("ContentFilter", "Event", "History", "Proximity", "Subscription", "parse_filter"),
    *("Delivery", "Explanation", "delivered", "delivery", "explain", "receivers"),
    *("EventBatch", "Matcher", "MatcherStatistics", "Matches", "Receivers", "Texts"),
    *("Client", "Events", "SyncClient", "connect", "connect_sync", "traced"),
    *("InvalidInput", "NearcastError"),
    "__version__",
}


def test_the_public_names_are_these() -> None:
    assert set(nearcast.__all__) == NAMES
    assert set(dir(nearcast)) >= NAMES
    assert list(nearcast.__all__) == sorted(nearcast.__all__)


@pytest.mark.parametrize("name", sorted(NAMES - {"__version__"}))
def test_each_is_there_and_documented(name: str) -> None:
    thing = getattr(nearcast, name)
    assert thing.__module__.startswith("nearcast.")
    # A dataclass without a docstring gets its signature as one; and inheriting one is not having one.
    documentation = inspect.cleandoc(
        thing.__dict__.get("__doc__") or "" if isinstance(thing, type) else thing.__doc__ or ""
    )
    assert documentation
    assert not documentation.startswith(f"{name}(")


def test_the_version_is_that_of_the_package() -> None:
    assert nearcast.__version__ == version("nearcast")


def test_what_is_not_there_is_missing_in_the_usual_way() -> None:
    assert not hasattr(nearcast, "nonsense")
    with pytest.raises(ImportError):
        exec("from nearcast import nonsense")  # noqa: S102 - as a user would write it


def test_importing_nearcast_is_quick_and_loads_nothing_slow() -> None:
    script = (
        "import sys, time; start = time.perf_counter(); import nearcast; took = time.perf_counter() - start; "
        "print(took, sorted({'numba', 'numpy', 'shapely', 'cql2', 'nearcast.model'} & set(sys.modules)))"
    )
    answers = [run_python("-c", script).split(maxsplit=1) for _ in range(3)]
    assert {loaded for _, loaded in answers} == {"[]\n"}
    assert min(float(took) for took, _ in answers) < 0.3, "the best of three: the machine may be busy"


def test_a_client_loads_nothing_that_only_others_need() -> None:
    loaded = loaded_by("import nearcast; nearcast.connect")
    assert not {"numba", "numpy", "pandas", "pyarrow", "pyspark", "shapely"} & loaded
