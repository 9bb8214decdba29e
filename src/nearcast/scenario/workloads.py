"""The workloads of a scenario: which applications run on which client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nearcast.dissemination.publisher import LocationRequest
from nearcast.errors import InvalidTrace
from nearcast.guesses import guess
from nearcast.runtime.host import Component
from nearcast.runtime.ports import Accuracy
from nearcast.runtime.random import RandomStreams
from nearcast.runtime.simulation.plane import Bounds, Plane
from nearcast.runtime.simulation.streets.graph import AttractionPoint
from nearcast.scenario.loads import LocationBasedService, LogWorkload, Publications, RandomPlaces
from nearcast.scenario.operations import Operation, read_log
from nearcast.scenario.replay import Replay
from nearcast.scenario.schema import Scenario
from nearcast.scenario.workload import Application, EventIds, Place, Published, anywhere, at_points

Make = Callable[[str], Component]
"""The application of one workload on the client of that name; made anew whenever it joins."""


class Workloads:
    """Makes the applications of each client; logs of operations are read, and checked, at once."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        clients: Sequence[str],
        random: RandomStreams,
        plane: Plane,
        bounds: Bounds,
        points: Sequence[AttractionPoint],
        published: Published,
    ) -> None:
        self._clients: Final = clients
        self._random: Final = random
        self._start: Final = scenario.run.start
        self._request: Final = LocationRequest(scenario.clients.location_interval, Accuracy(scenario.clients.accuracy))
        self._ids: Final = EventIds()
        self._published: Final = published
        places: Mapping[type[Publications], Callable[[], Place]] = {
            LocationBasedService: lambda: at_points(points, plane),
            RandomPlaces: lambda: anywhere(bounds, plane),
        }
        self._makers: Final[list[Make]] = []
        for number, load in enumerate(scenario.workload, 1):
            if isinstance(load, LogWorkload):
                self._makers.append(self._replays(load.file.path))
            elif isinstance(load, Publications):
                place = places.get(type(load), lambda: None)()
                self._makers.append(self._applications(load, f"workload-{number}", place))

    def applications(self, client: str) -> list[Component]:
        """For one life of that client: they need an ``EventService`` before them among its components."""
        return [make(client) for make in self._makers]

    def _applications(self, load: Publications, name: str, place: Place | None) -> Make:
        chosen = self._random.stream(name, "publishers").sample(
            range(len(self._clients)), round(load.publishers * len(self._clients))
        )
        publishers = {self._clients[index] for index in chosen}

        def make(client: str) -> Component:
            return Application(
                load,
                name,
                run_start=self._start,
                publishes=client in publishers,
                place=place,
                request=self._request,
                ids=self._ids,
                published=self._published,
            )

        return make

    def _replays(self, log: Path) -> Make:
        by_client: dict[str, list[Operation]] = {client: [] for client in self._clients}
        for operation in read_log(log):
            if operation.client not in by_client:
                near = guess(operation.client, self._clients) or f"; they are {self._clients[0]} to {self._clients[-1]}"
                raise InvalidTrace(f"{log.name}: there is no client {operation.client!r} in this scenario{near}")
            if operation.operation == "publish" and operation.id and not self._ids.reserve(operation.id):
                raise InvalidTrace(f"{log.name}: event {operation.id!r} is in another log of this scenario too")
            by_client[operation.client].append(operation)

        def make(client: str) -> Component:
            return Replay(
                by_client[client],
                run_start=self._start,
                request=self._request,
                ids=self._ids,
                published=self._published,
            )

        return make
