"""What a broker of a federation is told: the section ``[federation]`` of its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from nearcast.errors import InvalidInput, InvalidSettings
from nearcast.runtime.live.addresses import checked_name, host_and_port
from nearcast.settings_files import Duration, Section, Size

SHORTEST_SECRET = 16
"""Bytes: what is shorter can be guessed."""


class FederationSettings(Section, frozen=True, kw_only=True):
    listen: str | None = None
    """HOST:PORT for other brokers (port 0: a free one); without it and ``join`` the broker is alone."""

    join: tuple[str, ...] = ()
    """HOST:PORT of brokers that are in the federation already."""

    secret_file: Path | None = None
    """What all brokers of a federation know, and nobody else."""

    name: str | None = None
    """Of this broker, unlike that of any other; without one, it makes one up and keeps it."""

    advertise: str | None = None
    """HOST:PORT under which the others reach it, if that is not where it listens."""

    lat: Annotated[float, msgspec.Meta(ge=-90, le=90)] = 0.0
    lon: Annotated[float, msgspec.Meta(ge=-180, le=180)] = 0.0
    """Where it is: brokers rather link with those nearby."""

    replicate: bool = False
    """Whether an event is acknowledged only when a neighbour has stored it as well."""

    cell: Annotated[float, msgspec.Meta(gt=0, le=90)] = 0.01
    """Degrees: other brokers know the cell of this size in which a client is, not its position."""

    custody: Duration = Duration.of("7d")
    """For so long events are kept for a broker that cannot be reached."""

    custody_bytes: Size = Size.of("256 MiB")
    """All that may wait for other brokers; beyond, publishers are refused."""

    remember: Duration = Duration.of("1d")
    """For so long an event is recognised when it comes again."""

    handover: Duration = Duration.of("2s")
    """For so long a client that comes from another broker is kept waiting for its session."""

    forward: Duration = Duration.of("10m")
    """For so long what still comes for a client follows it to the broker to which it went."""

    heartbeat: Duration = Duration.of("1s")
    patience: Duration = Duration.of("3500ms")
    """A neighbour that was silent for so long is gone."""

    most_links: Annotated[int, msgspec.Meta(ge=2, le=64)] = 6
    wanted_links: Annotated[int, msgspec.Meta(ge=1, le=64)] = 3

    def __post_init__(self) -> None:
        try:
            for text, key in (
                (self.listen, "listen"),
                (self.advertise, "advertise"),
                *((each, "join") for each in self.join),
            ):
                if text is not None:
                    host_and_port(text, free=key == "listen")
            if self.name is not None:
                checked_name(self.name)
        except InvalidSettings:
            raise
        except InvalidInput as error:
            raise InvalidSettings(str(error)) from None
        if self.is_on and self.secret_file is None:
            raise InvalidSettings(
                "brokers of a federation know each other by a secret; give the same secret_file (--federation-secret-file) to all, "
                "made by: openssl rand -hex 32"
            )
        if not 0 < self.heartbeat < self.patience:
            raise InvalidSettings("patience must be longer than heartbeat, and that longer than 0s")
        if self.wanted_links > self.most_links:
            raise InvalidSettings("wanted_links cannot be more than most_links")

    @property
    def is_on(self) -> bool:
        return self.listen is not None or bool(self.join)

    def where(self) -> tuple[str, int]:
        """Where to listen: if only others are named, on this machine alone."""
        return host_and_port(self.listen or "127.0.0.1:0", free=True)

    def secret(self) -> bytes:
        assert self.secret_file is not None
        try:
            secret = self.secret_file.read_bytes().strip()
        except OSError as error:
            raise InvalidSettings(
                f"federation.secret_file: {self.secret_file} cannot be read: {error.strerror}"
            ) from None
        if len(secret) < SHORTEST_SECRET:
            raise InvalidSettings(
                f"federation.secret_file: {self.secret_file} holds {len(secret)} bytes, which can be guessed; "
                f"make one of {SHORTEST_SECRET} or more: openssl rand -hex 32"
            )
        return secret
