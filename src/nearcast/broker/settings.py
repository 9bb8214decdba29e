"""What a broker is told: ``BrokerSettings``, read from a TOML file by ``load``.

Every setting has a default, and the defaults are safe: without a file, nothing but this machine can connect.  Opening up is
refused where it would be by accident: see ``BrokerSettings.check`` and docs/security.md.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from nearcast.broker.federation.settings import FederationSettings
from nearcast.broker.schemes.settings import SchemeSettings, absolute_area
from nearcast.broker.tracing.settings import TracingSettings
from nearcast.errors import InvalidSettings
from nearcast.model.area import Area
from nearcast.model.fixes import FixRules
from nearcast.model.topic import checked_topic_filter
from nearcast.settings_files import Duration, Section, Size, read_settings

HIGHEST_PORT: Final = 65_535
Port = Annotated[int, msgspec.Meta(ge=0, le=HIGHEST_PORT)] | Literal["any", "off"]
"""``"any"`` or 0: a free one, as the operating system chooses; ``"off"``: not opened."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Rate = Annotated[float, msgspec.Meta(ge=0)]
"""Per second; 0: unlimited."""

Protocol = Literal["mqtt", "websocket", "http"]


@dataclass(frozen=True, slots=True)
class Listener:
    """Something to bind: port 0 asks the operating system for a free one."""

    protocol: Protocol
    host: str
    port: int
    tls: bool

    @property
    def name(self) -> str:
        """``mqtt``, ``mqtts``, ``websocket``, ``websockets``, ``http`` or ``https``."""
        return self.protocol + ("s" if self.tls else "")


class ListenSettings(Section, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    """Address for MQTT and WebSocket; 0.0.0.0 is every network of this machine."""

    port: Port = 1883
    """Of MQTT without TLS; ``any`` is a free one, ``off`` none."""

    tls_port: Port = "off"
    """Of MQTT with TLS; 8883 is usual."""

    websocket_port: Port = "off"
    """Of MQTT over WebSocket."""

    websocket_tls_port: Port = "off"
    """Of MQTT over WebSocket with TLS."""

    http_host: str = "127.0.0.1"
    """Address for HTTP."""

    http_port: Port = 8080
    """Of HTTP: events, status, metrics."""

    http_tls: bool = False
    """Whether HTTP is HTTPS."""

    proxies: tuple[str, ...] = ()
    """Addresses of HTTP proxies whose X-Forwarded-For is believed; they must set it themselves, whatever they are sent."""

    plain: bool = False
    """Whether listeners without TLS may be reachable from other machines."""

    def listeners(self) -> tuple[Listener, ...]:
        wanted: tuple[tuple[Protocol, str, Port, bool], ...] = (
            ("mqtt", self.host, self.port, False),
            ("mqtt", self.host, self.tls_port, True),
            ("websocket", self.host, self.websocket_port, False),
            ("websocket", self.host, self.websocket_tls_port, True),
            ("http", self.http_host, self.http_port, self.http_tls),
        )
        return tuple(
            Listener(protocol, host, 0 if port == "any" else port, tls)
            for protocol, host, port, tls in wanted
            if port != "off"
        )


class TlsSettings(Section, frozen=True, kw_only=True):
    certificate: Path | None = None
    """PEM, with the chain; without one, see ``auto``."""

    key: Path | None = None
    """Of the certificate."""

    client_ca: Path | None = None
    """Clients may show a certificate of this authority instead of a password; its common name is their user name."""

    auto: bool = True
    """Without a certificate: whether a self-signed one is made on the first start."""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidSettings("certificate and key belong together: give both, or neither")


class RuleSettings(Section, frozen=True, kw_only=True):
    """What somebody may do; ``nearcast.broker.access.rules`` says what it means."""

    name: str = ""
    """For messages that refuse something, and for whoever reads the file."""

    users: tuple[str, ...] = ()
    """For these users; ``*`` is everybody with a password."""

    groups: tuple[str, ...] = ()
    """For the users of these groups."""

    anonymous: bool = False
    """For clients without a password."""

    clients: tuple[str, ...] = ()
    """Only if the client id has one of these forms, such as ``phone-*``."""

    publish: tuple[str, ...] = ()
    """Topic filters; ``%u`` is the user's name, ``%c`` the client's id."""

    subscribe: tuple[str, ...] = ()
    """As ``publish``."""

    within: dict[str, Any] | None = None
    """An area in which place and reach of an event must lie."""

    reach_at_most: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Metres from its centre that an event may go; it must have a reach then."""

    history_at_most: Duration | None = None
    """How far subscriptions, queries and messages may look back."""

    may_address: bool = False
    """Whether messages may choose receivers by their context."""

    plans: bool = False
    """Whether transitions may be commanded, and status, journal and dashboard be seen."""

    hand_in: bool = False
    """Whether plans that a planner has signed and answers may be handed in, and status and journal be read: for jobs."""

    query: bool = False
    """Whether stored events may be asked for by HTTP."""

    observe: bool = False
    """Whether other clients may be observed, those that let themselves be."""

    people_per_hour: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many people the messages that this rule allows may go to within any hour, of each user; none: as many as there are."""

    def __post_init__(self) -> None:
        if not (self.users or self.groups or self.anonymous):
            raise InvalidSettings(
                "this rule is for nobody; give users (['*'] is everybody with a password), groups, or anonymous = true"
            )
        for topic_filter in (*self.publish, *self.subscribe):
            checked_topic_filter(topic_filter)
        self.area()

    def area(self) -> Area | None:
        """Of ``within``."""
        return None if self.within is None else absolute_area(self.within)


Algorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Of tokens; there is none that means no signature."""


class JwtSettings(Section, frozen=True, kw_only=True):
    """Signed tokens (JWT) instead of a password; ``nearcast.broker.access.tokens`` says how they are judged."""

    keys: Path | None = None
    """Public keys of the issuer: PEM, one or several, or a JWKS; read again when it changes."""

    secret: Path | None = None
    """Instead of keys, for HS256, HS384 and HS512: a file with the secret that the issuer shares."""

    algorithms: tuple[Algorithm, ...]
    """All that are taken, as in ``["EdDSA"]``."""

    issuer: str
    """What the claim ``iss`` must be."""

    audience: str
    """What the claim ``aud`` must be, or hold: a name for this broker."""

    leeway: Duration = Duration.of("30s")
    """By how much the clocks of issuer and broker may differ."""

    user_claim: str = "sub"
    """The claim that is the user's name."""

    groups_claim: str | None = None
    """The claim that lists groups, to which the user then belongs besides those of ``access.groups``."""

    def __post_init__(self) -> None:
        if (self.keys is None) == (self.secret is None):
            raise InvalidSettings(
                "jwt: give keys, or a secret, and not both: a public key must never count as a secret"
            )
        if not self.algorithms:
            raise InvalidSettings('jwt: list the algorithms that are taken, as in algorithms = ["EdDSA"]')
        for algorithm in self.algorithms:
            if algorithm.startswith("HS") != (self.secret is not None):
                raise InvalidSettings(
                    f"jwt: {algorithm} goes with {'a secret' if algorithm.startswith('HS') else 'keys'};"
                    " both kinds at once would let a public key be used as a secret"
                )
        if not self.issuer or not self.audience:
            raise InvalidSettings(
                "jwt: issuer and audience say whose tokens are taken, and that they are for this broker"
            )
        if self.leeway > 300_000_000:
            raise InvalidSettings("jwt: a leeway of more than 5m is a clock that is wrong; set the clock")

    @property
    def file(self) -> Path:
        found = self.keys or self.secret
        assert found is not None, "one of both is given"
        return found


class AccessSettings(Section, frozen=True, kw_only=True):
    anonymous: Literal["loopback", "always", "never"] = "loopback"
    """From where clients are let in that give no password."""

    passwords: Path | None = None
    """The file of users; without one, ``users`` in the data folder."""

    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Names of groups, and the users in them."""

    jwt: JwtSettings | None = None
    """Tokens that are taken instead of a password; none: no token is."""

    rules: tuple[RuleSettings, ...] = msgspec.field(default=(), name="rule")

    def __post_init__(self) -> None:
        for rule in self.rules:
            for group in rule.groups:
                if group not in self.groups and (self.jwt is None or self.jwt.groups_claim is None):
                    raise InvalidSettings(
                        f"rule {rule.name!r} is for the group {group!r}, which is not among the groups"
                    )


class LimitSettings(Section, frozen=True, kw_only=True):
    """Rates hold for clients of other machines; ``loopback = true`` has them hold for this one's too."""

    connections: Count = 100_000
    """Open at once."""

    connections_per_address: Count = 1_000
    """Open at once from one address."""

    connects_per_second: Rate = 1_000.0
    """Of all clients together."""

    connects_per_second_per_address: Rate = 50.0
    """From one address."""

    half_open: Count = 1_000
    """Connections over MQTT and WebSocket that have not logged in yet; beyond, the oldest of them has to go."""

    wrong_passwords_per_minute: Rate = 10.0
    """From one address, after the first 5; then only those get in from there who have shown their password before."""

    wrong_tokens_per_minute: Rate = 60.0
    """From one address, after the first 50; nobody guesses one, but looking at it is work. Tokens that were good before get in from there."""

    requests_per_second: Rate = 50.0
    """Over HTTP: of one user, or of all from one address who have not shown before who they are."""

    request_time: Duration = Duration.of("60s")
    """In which the body of an HTTP request must have come."""

    sessions: Count = 200_000
    """Kept, with or without a connection."""

    subscriptions_per_client: Count = 1_000
    """Of one client."""

    subscription_bytes_per_client: Size = Size.of("256 KiB")
    """Areas and filters of all subscriptions of one client together: every event is held against them."""

    contexts_per_client: Count = 16
    """Registered by one client."""

    packet: Size = Size.of("1 MiB")
    """The largest that is taken."""

    properties: Size = Size.of("64 KiB")
    """User properties of one packet together: the broker has to understand them."""

    topic_bytes: Count = 1_024
    """The longest topic, filter or client id."""

    topic_levels: Count = 32
    """The deepest topic or filter."""

    retained_messages: Count = 100_000
    """Kept in all."""

    retained_bytes: Size = Size.of("256 MiB")
    """All of them together."""

    publishes_per_second: Rate = 1_000.0
    """Of one client; over HTTP of one user, or of all anonymous ones of an address."""

    bytes_per_second: Size = Size.of("8 MiB")
    """From one client; over HTTP as publishes_per_second. User properties count 16 times, and filters in them 128 times, as they are more work."""

    positions_per_second: Rate = 20.0
    """Reports of one client."""

    subscribes_per_second: Rate = 100.0
    """Of one client; one with a long area or filter counts as several: one more for each 1 KiB of an area, or 128 bytes of a filter."""

    burst: Duration = Duration.of("5s")
    """So much of each rate may be used at once after a rest."""

    loopback: bool = False
    """Whether rates hold for clients of this machine, too."""

    def __post_init__(self) -> None:
        if not 16 <= self.packet <= 268_435_455 + 5:
            raise InvalidSettings("packet must lie between 16 B and 256 MiB, the largest that MQTT knows")
        if not self.burst:
            raise InvalidSettings("burst must be longer than 0s, else nothing is ever allowed")


class PositionSettings(Section, frozen=True, kw_only=True):
    """Position reports that say when they were made, and how accurate they are (``nearcast.model.fixes``)."""

    ahead: Duration = Duration.of("30s")
    """By so much a client's clock may be ahead of the broker's; a report from further ahead is refused."""

    accuracy: Annotated[float, msgspec.Meta(ge=0)] = 100.0
    """Metres; reports that say a worse one do not count for presence."""

    @property
    def rules(self) -> FixRules:
        return FixRules(int(self.ahead), self.accuracy)


class SessionSettings(Section, frozen=True, kw_only=True):
    max_expiry: Duration = Duration.of("7d")
    """What clients ask for beyond is cut down to it."""

    queue_messages: Count = 10_000
    """Waiting for one client, connected or not; beyond, the oldest go first."""

    queue_bytes: Size = Size.of("16 MiB")
    """The same in bytes."""

    inflight: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 256
    """Unacknowledged in each direction: the receive maximum that the broker announces, and the most that it uses."""

    topic_aliases: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 64
    """Of MQTT 5, in each direction."""

    keep_alive: Duration = Duration.of("10m")
    """The longest; clients that ask for a longer one, or for none, are told this one."""

    connect_timeout: Duration = Duration.of("10s")
    """From the opening of a connection until its CONNECT must have come."""

    packet_timeout: Duration = Duration.of("60s")
    """In which a packet that has begun must have come as a whole."""

    output_bytes: Size = Size.of("4 MiB")
    """Written to a connection and not taken yet; beyond, QoS 0 messages are dropped."""

    slow_consumer: Duration = Duration.of("30s")
    """So long may a connection take nothing while something waits for it; then it is cut off."""


class JournalSettings(Section, frozen=True, kw_only=True):
    keep: tuple[str, ...] = ()
    """Topic filters of plain QoS 0 messages that are archived as well."""

    retention_age: Duration = Duration.of("30d")
    """Older records are deleted, once they are in the lake."""

    retention_size: Size = Size.of("10 GiB")
    """Beyond, the oldest are deleted, once they are in the lake."""

    lake: Path | None = None
    """The folder to which closed stretches are exported; without one, ``lake`` in the data folder."""

    def __post_init__(self) -> None:
        for topic_filter in self.keep:
            checked_topic_filter(topic_filter)


class AuditSettings(Section, frozen=True, kw_only=True):
    """The log of who addressed, observed or commanded whom, in ``audit`` of the data folder (docs/security.md)."""

    enabled: bool = True
    file_size: Size = Size.of("16 MiB")
    """Then the next file is begun."""

    retention_age: Duration = Duration.of("365d")
    """Files whose last entry is older are deleted."""

    retention_size: Size = Size.of("1 GiB")
    """Beyond, the oldest files are deleted."""


class DashboardSettings(Section, frozen=True, kw_only=True):
    """The live map below ``/dashboard`` of the HTTP listener, for whoever may have mechanisms exchanged (docs/dashboard.md)."""

    enabled: bool = True
    map: Path | None = None
    """A map of OpenStreetMap (.osm, .osm.pbf) or a scenario, whose streets are drawn; none: clients on an empty ground."""

    viewers: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 32
    """Pages that may be open at a time."""

    period: Duration = Duration.of("250ms")
    """Between two pictures of where everybody is."""

    stay: Duration = Duration.of("12h")
    """So long a log-in holds."""

    def __post_init__(self) -> None:
        if self.period < 50_000:
            raise InvalidSettings("period must be at least 50ms: no eye sees more, and the broker has other work")
        if not self.stay:
            raise InvalidSettings("stay must be longer than 0s, else nobody is ever logged in")


class LogSettings(Section, frozen=True, kw_only=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """What is said at least."""

    format: Literal["text", "json"] = "text"
    """For people, or one JSON object a line."""


class BrokerSettings(Section, frozen=True, kw_only=True):
    data: Path = Path("nearcast-data")
    """The folder for everything that the broker keeps."""

    listen: ListenSettings = ListenSettings()
    tls: TlsSettings = TlsSettings()
    access: AccessSettings = AccessSettings()
    limits: LimitSettings = LimitSettings()
    positions: PositionSettings = PositionSettings()
    session: SessionSettings = SessionSettings()
    journal: JournalSettings = JournalSettings()
    schemes: SchemeSettings = SchemeSettings()
    federation: FederationSettings = FederationSettings()
    dashboard: DashboardSettings = DashboardSettings()
    tracing: TracingSettings = TracingSettings()
    audit: AuditSettings = AuditSettings()
    log: LogSettings = LogSettings()

    def __post_init__(self) -> None:
        self.check()

    @property
    def passwords(self) -> Path:
        return self.access.passwords or self.data / "users"

    @property
    def lake(self) -> Path:
        return self.journal.lake or self.data / "lake"

    def changed(
        self,
        *,
        data: Path | None = None,
        host: str | None = None,
        port: Port | None = None,
        http_port: Port | None = None,
        federation: Mapping[str, Any] | None = None,
        dashboard: Mapping[str, Any] | None = None,
    ) -> BrokerSettings:
        """The same with what the command line says instead; checked again."""
        said = {key: value for key, value in (federation or {}).items() if value}
        given = {"host": host, "port": port, "http_port": http_port}
        listen = msgspec.structs.replace(
            self.listen, **{key: value for key, value in given.items() if value is not None}
        )
        changed = msgspec.structs.replace(
            self,
            listen=listen,
            data=self.data if data is None else data,
            federation=msgspec.structs.replace(self.federation, **said),
            dashboard=msgspec.structs.replace(
                self.dashboard, **{key: value for key, value in (dashboard or {}).items() if value is not None}
            ),
        )
        changed.check()
        return changed

    def check(self) -> None:
        """Refuse what would open the broker by accident."""
        if not self.listen.listeners():
            raise InvalidSettings("listen: every port is off, so that nobody could connect; open one")
        for problem in self._exposures():
            raise InvalidSettings(problem)

    def _exposures(self) -> Iterator[str]:
        for listener in self.listen.listeners():
            if listener.tls:
                if self.tls.certificate is None and not self.tls.auto:
                    yield "tls: a listener with TLS needs a certificate and its key; give both, or auto = true"
            elif not (self.listen.plain or is_loopback(listener.host)):
                yield _EXPOSED.format(host=listener.host, **_WORDS[listener.protocol])


_EXPOSED: Final = (
    "listen.{host_key}: {host} can be reached from other machines, and on listen.{port_key} everything, passwords and positions "
    "included, would travel in the clear; set {instead}, or listen.plain = true if the network itself is safe"
)
_WORDS: Final = {
    "mqtt": {"host_key": "host", "port_key": "port", "instead": 'listen.port = "off" and listen.tls_port = 8883'},
    "websocket": {
        "host_key": "host",
        "port_key": "websocket_port",
        "instead": 'listen.websocket_port = "off" and listen.websocket_tls_port = 8884',
    },
    "http": {"host_key": "http_host", "port_key": "http_port", "instead": "listen.http_tls = true"},
}


def port_in(text: str) -> Port:
    """A port as it is written on the command line: the same words and numbers as in a file."""
    if text == "any":
        return "any"
    if text == "off":
        return "off"
    if not (text.isascii() and text.isdecimal()) or int(text) > HIGHEST_PORT:
        raise InvalidSettings(
            f"{text!r} is no port; write a number up to {HIGHEST_PORT}, 'any' (or 0) for a free one, or 'off' for none"
        )
    return int(text)


@lru_cache(maxsize=4096)  # asked several times for each request, by the same few
def is_loopback(host: str) -> bool:
    """Whether only this machine is meant; any other name may resolve to anything, and an empty one is everywhere."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)  # ::ffff:127.0.0.1, as dual-stack sockets name it
    return (mapped or address).is_loopback


def load(path: Path | str) -> BrokerSettings:
    """Read a settings file."""
    return read_settings(Path(path), BrokerSettings)
