"""The broker of the demo: ``nearcast serve`` in a process and a folder of its own, both gone when the demo ends."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from nearcast.cli.demo.child import ChildProcess
from nearcast.cli.demo.devices import TAXIS
from nearcast.cli.demo.places import HALF, point_at
from nearcast.dissemination.broker_state import square_kilometres
from nearcast.errors import SetupError
from nearcast.filtering.tessellation import GeoBox

LADDER: Final = ("EGRID(factor=12)", "EGRID(factor=24)", "RADIAL")
"""Filter schemes, for few people to many.

Where few people talk little, it is cheap to know only the cell that each is in, and to send a few copies too many.  In a crowd every copy
too many costs more than knowing where people are: in the table that the demo ends with, cells have a precision of 0.4 to 0.5 and exact
positions one of 0.99, and a delivery takes 200 bytes, all in all, instead of 800.  (What a transition costs is earned back in minutes, which a
demo does not have.)  GRID has no place here: it tells people of their own cell alone,
and so misses what is near beyond its border.
"""
BY_HAND: Final = LADDER[-1]
"""What is asked for before the stories: who is within reach of a sender is known as exactly as the scheme tells positions."""

_SCHEMES: Final = ('{ kind = "EGRID", factor = 12 }', '{ kind = "EGRID", factor = 24 }', '{ kind = "RADIAL" }')
_STEPS: Final = ((0.4, 0.35), (0.6, 0.5))
"""Of each scheme but the first: from which share of all people on, and back at which."""

_OTHERS: Final = TAXIS + 1
"""Who is subscribed beside the people: taxis, and somebody new."""

_RULE: Final = """
[[schemes.rule]]
when = "subscribers per square kilometre"
above = {above}
back_at = {back_at}
dwell = "1s"
scheme = {scheme}
"""
_SETTINGS: Final = """
[listen]
port = "any"
http_port = {http_port}
[log]
level = "warning"
[limits]
connections_per_address = {connections}
[schemes]
start = {start}
territory = {{ south = {south}, west = {west}, north = {north}, east = {east} }}
"""
_PROGRAM: Final = "import sys; from nearcast.cli import main; sys.exit(main())"
PATIENCE: Final = 600.0
"""Seconds for the start, and for a first message: a fresh machine compiles for half a minute, a busy one for many."""

_MARGIN: Final = 150.0
"""Metres around the city that belong to the territory: areas of interest reach beyond its border."""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """What the broker says of itself."""

    scheme: str
    following: int
    """People who are in that scheme, or in that of their region."""

    elsewhere: int
    """Of these, those in that scheme."""

    regions: int
    """With schemes of their own."""

    waiting: int
    """People who have not confirmed the last transition yet."""

    transitions: int
    bytes_in: int
    bytes_out: int


def territory() -> GeoBox:
    south_west = point_at(-HALF - _MARGIN, -HALF - _MARGIN)
    north_east = point_at(HALF + _MARGIN, HALF + _MARGIN)
    return GeoBox(south_west.lat, south_west.lon, north_east.lat, north_east.lon)


def settings(people: int, map_file: Path | None = None, http_port: int | None = None) -> str:
    """The settings file for so many people at the most, perhaps on the streets of that scenario; without a port, on any."""
    box = territory()
    corners = {"south": box.south, "west": box.west, "north": box.north, "east": box.east}
    ground = square_kilometres(box)
    rules = [
        _RULE.format(
            above=round((above * people + _OTHERS) / ground, 1),
            back_at=round((back_at * people + _OTHERS) / ground, 1),
            scheme=scheme,
        )
        for (above, back_at), scheme in zip(_STEPS, _SCHEMES[1:], strict=True)
    ]
    port = '"any"' if http_port is None else http_port
    head = _SETTINGS.format(http_port=port, connections=people + 1_000, start=_SCHEMES[0], **corners)
    streets = "" if map_file is None else f'[dashboard]\nmap = "{map_file}"\n'
    return head + "".join(rules) + streets


class DemoBroker:
    """To be used with ``async with``."""

    def __init__(self, people: int, scenario: str | None = None, http_port: int | None = None) -> None:
        """``scenario`` says which streets its dashboard draws."""
        self._people: Final = people
        self._scenario: Final = scenario
        self._http_port: Final = http_port
        self._child: Final = ChildProcess(self._heard)
        self._ports: Final[dict[str, int]] = {}
        self._ready: Final = asyncio.Event()
        self._http: HTTPConnection
        self._asking: Final = asyncio.Lock()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self._ports['mqtt']}"

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self._ports['http']}"

    @property
    def dashboard(self) -> str:
        return f"{self.http}/dashboard/"

    @property
    def lake(self) -> Path:
        return self._child.folder / "data" / "lake"

    @property
    def observed(self) -> Path:
        """Where its dashboard looks for recall and precision by place."""
        from nearcast.pipeline.settings import PipelineSettings

        return PipelineSettings(lake=self.lake).warehouse_folder / "observed" / "places"

    async def __aenter__(self) -> Self:
        await self._child.start(self._arguments)
        try:
            await self._await_ready()
        except BaseException:
            await self._child.end(by_itself=False)
            raise
        self._http = HTTPConnection("127.0.0.1", self._ports["http"], timeout=30)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()
        await self._child.end(by_itself=False)

    async def status(self) -> BrokerStatus:
        answer = await self._ask("GET", "/status")
        schemes = answer["filter_schemes"]
        return BrokerStatus(
            scheme=schemes["scheme"],
            following=sum(schemes["groups"].values()),
            elsewhere=schemes["groups"].get(schemes["scheme"], 0),
            regions=len(schemes["regions"]),
            waiting=schemes["waiting"],
            transitions=schemes["transitions"],
            bytes_in=answer["bytes_in"],
            bytes_out=answer["bytes_out"],
        )

    async def transition(self, scheme: str) -> None:
        """As ``nearcast transition`` does."""
        await self._ask("POST", "/transitions", json.dumps({"scheme": scheme}))

    async def _ask(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        async with self._asking:  # one connection, one question at a time
            return await asyncio.to_thread(self._asked, method, path, body)

    def _asked(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        try:
            try:
                return self._exchanged(method, path, body)
            except ConnectionError:  # idle for too long, and so closed: while stories are told, or on a busy machine
                self._http.close()
                return self._exchanged(method, path, body)
        except (OSError, HTTPException, ValueError) as error:
            self._http.close()
            raise SetupError(f"the demo's broker does not answer any more: {error}{self._child.last_words}") from None

    def _exchanged(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        self._http.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer: dict[str, Any] = json.load(self._http.getresponse())
        return answer

    def _arguments(self, folder: Path) -> tuple[str, ...]:
        map_file = None
        if self._scenario is not None:
            map_file = folder / "city.toml"
            map_file.write_text(self._scenario, encoding="utf-8")
        (folder / "settings.toml").write_text(settings(self._people, map_file, self._http_port), encoding="utf-8")
        return ("-c", _PROGRAM, "serve", "--config", str(folder / "settings.toml"), "--data", str(folder / "data"))

    def _heard(self, line: str) -> None:
        found = re.fullmatch(r"(\w+) on .*:(\d+)", line)
        if found:
            self._ports[found[1]] = int(found[2])
        if line == "ready":
            self._ready.set()

    async def _await_ready(self) -> None:
        ready = asyncio.ensure_future(self._ready.wait())
        done, _ = await asyncio.wait(
            [ready, self._child.silence], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
        )
        ready.cancel()
        if not done:
            raise SetupError(f"the demo's broker was not ready within {PATIENCE:.0f} s{self._child.last_words}")
        if "http" not in self._ports or "mqtt" not in self._ports:
            raise SetupError(f"the demo's broker did not start{self._child.last_words}")
