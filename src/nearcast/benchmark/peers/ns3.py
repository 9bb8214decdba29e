"""ns-3: the packet simulator of the field, with its 802.11 models.

Our scenario program (``ns3_program/radio.cc``) is compiled once and kept in the user's cache.  It gets a scenario on its
standard input, does all of its work in C++ and measures its own run, so that ns-3 pays neither for Python nor for reading
the scenario.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from nearcast.benchmark.radio_scenario import RadioAnswer, RadioScenario
from nearcast.errors import BenchmarkError, SetupError
from nearcast.runtime.simulation.radio.profile import Family, RadioProfile

SOURCE: Final = Path(__file__).with_name("ns3_program") / "radio.cc"
_LIBRARIES: Final = ("wifi", "mobility", "propagation", "network", "core")
_OPTIONS: Final = ("-O3", "-std=c++17")
_VERSION: Final = "#include <ns3/version-defines.h>\nNS3_VERSION_MAJOR NS3_VERSION_MINOR NS3_VERSION_BUILD_PROFILE"
_BROADCAST: Final = -1


class Ns3:
    """A compiled scenario program.  Building it takes some seconds, once per machine."""

    name: Final = "ns-3"

    def __init__(self) -> None:
        reason = self.available()
        if reason is not None:
            raise SetupError(f"ns-3 cannot run here: {reason}")
        self.version = _version() or "unknown"
        self._program = _built(self.version)

    @staticmethod
    def available() -> str | None:
        """Why ns-3 cannot run here, or ``None`` if it can."""
        if shutil.which("g++") is None:
            return "g++ is not installed; scripts/install-peers installs it"
        if _version() is None:
            return "the headers of ns-3 are not installed; scripts/install-peers installs libns3-dev"
        return None

    def run(self, scenario: RadioScenario, seed: int = 1) -> RadioAnswer:
        done = subprocess.run(
            [self._program], input=_described(scenario, seed), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise BenchmarkError(f"ns-3 failed with status {done.returncode}: {done.stderr.strip() or 'no message'}")
        document = json.loads(done.stdout)
        rows = np.array(document["received"], np.int64).reshape(-1, 3)
        return RadioAnswer(rows[:, 0], rows[:, 1], rows[:, 2], document["seconds"])


def _version() -> str | None:
    """Version and build profile, as the headers say."""
    asked = subprocess.run(
        ["g++", "-x", "c++", "-E", "-P", "-"], input=_VERSION, capture_output=True, text=True, check=False
    )
    if asked.returncode:
        return None
    major, minor, profile = asked.stdout.split()[-3:]
    return f"{major}.{minor} {profile.strip(chr(34))}"


def _built(version: str) -> Path:
    mark = hashlib.sha256(f"{version} {_OPTIONS}".encode() + SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearcast"
    program = folder / f"ns3-radio-{mark}"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    # Built aside and then renamed: whoever builds at the same time does no harm.
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        built = Path(aside) / program.name
        libraries = [f"-lns3-{library}" for library in _LIBRARIES]
        command = ["g++", *_OPTIONS, "-o", str(built), str(SOURCE), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            raise SetupError(f"the scenario program for ns-3 {version} does not build: {complaint}")
        built.rename(program)
    return program


def _mode(family: Family, rate: int) -> str:
    if family is Family.OFDM:
        return f"ErpOfdmRate{rate // 1_000_000}Mbps"
    return f"DsssRate{f'{rate / 1e6:g}'.replace('.', '_')}Mbps"


def _settings(profile: RadioProfile) -> dict[str, object]:
    return {
        "dsss": int(profile.family is Family.DSSS),
        "data_mode": _mode(profile.family, profile.data_rate),
        "basic_mode": _mode(profile.family, profile.basic_rate),
        "broadcast_mode": _mode(profile.family_at(profile.rate_of_broadcasts), profile.rate_of_broadcasts),
        # The closed form; the other one of ns-3 for OFDM reads tables.
        "error_model": "ns3::NistErrorRateModel",
        "rts_threshold": profile.rts_threshold,
        "retry_limit": profile.retry_limit,
        "queue_frames": profile.queue_frames,
        "lifetime_ns": profile.lifetime_ns,
        "slot_ns": profile.slot_ns,
        "path_loss_exponent": profile.path_loss_exponent,
        "reference_loss_db": profile.reference_loss_db,
        "tx_power_dbm": profile.tx_power_dbm,
        "noise_figure_db": profile.noise_figure_db,
        "preamble_sinr_db": profile.preamble_sinr_db,
        "reception_threshold_dbm": profile.reception_threshold_dbm,
        "interference_threshold_dbm": profile.interference_threshold_dbm,
        "carrier_sense_threshold_dbm": profile.carrier_sense_threshold_dbm,
    }


def _described(scenario: RadioScenario, seed: int) -> str:
    """The scenario as words and numbers; ns-3 adds LLC, MAC header and checksum itself."""
    settings = {
        **_settings(scenario.profile),
        "seed": seed,
        "duration_ns": scenario.nanoseconds,
        "network_bytes": scenario.payload + scenario.profile.network_overhead_bytes,
    }
    lines = [f"{name} {value}" for name, value in settings.items()]
    lines += [f"places {len(scenario)}"]
    lines += [f"{x!r} {y!r}" for x, y in zip(scenario.x.tolist(), scenario.y.tolist(), strict=True)]
    lines += [f"sendings {len(scenario.times)}"]
    sendings = zip(scenario.times.tolist(), scenario.senders.tolist(), strict=True)
    lines += [f"{time} {sender} {_BROADCAST}" for time, sender in sendings]
    lines += [f"saturated {len(scenario.saturated)}"]
    lines += [f"{sender} {receiver}" for sender, receiver in scenario.saturated]
    return "\n".join([*lines, "end", ""])
