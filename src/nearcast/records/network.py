"""What the interfaces of the hosts carried, and what they did not."""

from __future__ import annotations

from typing import Final

from nearcast.records.column import RecordTable, count, instant, measure, name

_INTERFACE: Final = name("interface", "`cellular`, `wifi`, `bluetooth`")
_KIND: Final = name(
    "kind", "what the message is for, such as `event` (on every hop), `subscription`, or `context` (a position report)"
)

MESSAGES: Final = RecordTable(
    "messages",
    "A message was sent and its fate is known. A broadcast is one row, however many heard it.",
    (
        instant("time", "when its sender handed it to the interface"),
        instant("ended", "when it had arrived, or was given up"),
        _INTERFACE,
        _KIND,
        name("sender", "the host that sent it on this hop"),
        name("receiver", "the host that it was sent to; null: all in range", nullable=True),
        count("bytes", "size on the interface, headers included"),
        name("outcome", "`received`, `sent` (a broadcast), or the reason why it reached nobody, as in `drops`"),
        count("received", "how many hosts got it"),
    ),
)

DROPS: Final = RecordTable(
    "drops",
    "Messages got lost: before they went out, on their way, or where nobody took them. `messages` has their rows too.",
    (
        instant("time", "when they were given up"),
        _INTERFACE,
        name("host", "whose interface it is"),
        _KIND,
        name(
            "reason",
            "why, as the network names it, such as `receiver down`, `no coverage`, `transmission lost`, `queue full`",
        ),
        count("messages", "how many"),
        count("bytes", "their size together"),
    ),
)

TRAFFIC: Final = RecordTable(
    "traffic",
    "What an interface of a host carried in a time frame; that of the simulator is the whole run.",
    (
        instant("since", "start of the time frame"),
        instant("until", "its end, which is no longer part of it"),
        _INTERFACE,
        # A client's upload is what its cellular interface sent, its download what that received (BYPASS.KOM 6.1.4).
        name("direction", "seen from that interface", "sent", "received"),
        _KIND,
        name("host", "whose interface it is"),
        count("messages", "how many"),
        count("bytes", "their size together, headers included"),
    ),
)

ENERGY: Final = RecordTable(
    "energy",
    "What an interface of a host cost its battery in a time frame, in joules; that of the simulator is the whole run. Only of radios whose costs are known.",
    (
        instant("since", "start of the time frame"),
        instant("until", "its end, which is no longer part of it"),
        _INTERFACE,
        name("host", "whose interface it is"),
        count("listened", "microseconds for which somebody listened there"),
        measure("sending_joules", "for the messages and bytes that `traffic` says were sent"),
        measure("receiving_joules", "for those that were received, beyond listening"),
        measure("listening_joules", "for listening"),
    ),
)
