"""Compiles as a server does, then lets a matcher work; prints what had to be compiled only then."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from nearcast.matching import grid, kernels, matches, packed, subscribers
from nearcast.matching.compilation import KERNELS, compile_kernels, is_compiled
from nearcast.matching.matcher import Matcher
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription

MODULES = (grid, kernels, matches, packed, subscribers)
PEOPLE = 3_000


def compiled() -> Iterator[tuple[str, Any]]:
    """Kernels and their parts, with the types of arguments that they were compiled for."""
    for module in MODULES:
        for name, value in vars(module).items():
            if hasattr(value, "signatures") and value.__module__ == module.__name__:
                yield from ((f"{module.__name__}.{name}", signature) for signature in value.signatures)


def work() -> None:
    matcher, random = Matcher(), Random(1)

    def anywhere() -> Point:
        return Point(49 + random.random() / 10, 8 + random.random() / 10)

    def report(client: str) -> None:
        place = anywhere()
        matcher.move(client, place.lat, place.lon)

    clients = [f"client {number}" for number in range(PEOPLE)]
    for number, client in enumerate(clients):
        report(client)
        matcher.subscribe(client, Subscription("a/#", area=Circle(100)))
        if number % 3 == 0:
            matcher.subscribe(client, Subscription("b", area=Circle(100, anywhere()), id="there"))
        if number % 5 == 0:
            matcher.subscribe(client, Subscription("b", id="anywhere"))
    for client in clients:
        report(client)
    events = [
        Event(str(number), topic, 0, place=anywhere(), reach=Circle(300, anywhere()) if number % 2 else None)
        for number, topic in enumerate(["a/b", "b"] * 100)
    ]
    for event in events:
        matcher.match(event)
    matcher.match_batch(events)
    for client in clients[::7]:
        matcher.unsubscribe(client)


def main() -> None:
    compile_kernels()
    kernel: Any
    for kernel in KERNELS:
        if not kernel.signatures:
            print(f"{kernel.__name__} was not compiled")
    if not is_compiled():
        print("would be compiled again by the next process")
    before = set(compiled())
    work()
    for name, signature in sorted(set(compiled()) - before, key=str):
        print(f"{name} was compiled late, for {signature}")


if __name__ == "__main__":
    main()
