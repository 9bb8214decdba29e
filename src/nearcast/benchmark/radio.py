"""``nearcast bench radio``: who hears a frame, and how fast is that known?  nearcast's radio beside ns-3."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.benchmark.peers.ns3 import Ns3
from nearcast.benchmark.radio_curves import Radio, curves, differences
from nearcast.benchmark.radio_ours import OurRadio
from nearcast.benchmark.radio_scenarios import FROM_HOST_TO_HOST
from nearcast.benchmark.radio_speed import BY_CPP, BY_PYTHON, BY_THE_KERNEL, courses, growth
from nearcast.benchmark.report import Measurement, Missing, Report, machine, ratios
from nearcast.benchmark.timing import take_turns
from nearcast.errors import NearcastError

Progress = Callable[[str], None]


def run(*, quick: bool = False, peers: bool = True, progress: Progress = lambda _: None) -> Report:
    """Measure.  ``quick`` takes fewer curves, smaller crowds and fewer rounds."""
    missing: list[Missing] = []
    peer = _start_peer(missing, progress) if peers else None
    if not peers:
        missing.append(Missing(Ns3.name, "left out on request"))
    results: list[Measurement] = []
    for curve in curves(quick=quick):
        progress(f"{curve.name}, {curve.parameters['radio']}")
        ours = curve.measure(OurRadio())
        results += ours
        if peer is not None:
            theirs = curve.measure(peer)
            results += [*theirs, *differences(ours, theirs)]
    timed: list[Measurement] = []
    for to_be_timed in courses(peer, quick=quick):
        take_turns(to_be_timed, 3 if quick else 5, 0.1 if quick else 0.5, progress)
        timed += [course.measurement() for course in to_be_timed]
    found = (*timed, *growth(timed), *results)
    return Report("radio", machine(), found, tuple(missing), _ratios(tuple(timed)))


def _start_peer(missing: list[Missing], progress: Progress) -> Radio | None:
    reason = Ns3.available()
    if reason is None:
        progress("building the scenario program of ns-3, where that has not been done yet")
        try:
            return Ns3()
        except NearcastError as error:
            reason = str(error)
    missing.append(Missing(Ns3.name, reason))
    return None


def _ratios(timed: tuple[Measurement, ...]) -> dict[str, float]:
    """Under the name of the contract: one broadcast a second, handed in on both sides by what is fastest there."""
    found: dict[str, float] = {}
    for rate in (1, 10):
        for handed_in in (BY_THE_KERNEL, BY_PYTHON):
            told = [f"{rate} broadcasts/s" if rate > 1 else "", handed_in if handed_in == BY_PYTHON else ""]
            ending = f" ({', '.join(filter(None, told))})" if any(told) else ""
            chosen = tuple(row for row in timed if row.parameters.get("handed_in") in {handed_in, BY_CPP})
            compared = ratios(chosen, {"broadcasts_per_second": rate})
            found |= {f"{name}{ending}": ratio for name, ratio in compared.items()}
    for kind in FROM_HOST_TO_HOST:
        # All of our game against its frames alone.
        compared = ratios(timed, {"scenario": "adhoc", "delivery": kind})
        found |= {f"{name} (AR, {kind})": ratio for name, ratio in compared.items()}
    return found
