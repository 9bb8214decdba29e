"""The live half of the runtime: the real clock, asyncio, UDP sockets.

========================  =====================================================================
``runtime``               hosts on an event loop: they join, leave, fail and return
``clock``, ``timers``     real time
``udp``                   links to whoever is near, by datagrams (``sockets``: how they are opened)
``sensor``                positions that are fed in, or that follow a model of mobility
========================  =====================================================================

Nothing here imports numba: a live host starts in a fraction of a second.
"""

from nearcast.runtime.live.clock import LiveClock
from nearcast.runtime.live.runtime import LiveHost, LiveRuntime, run_until_stopped
from nearcast.runtime.live.sensor import FedPosition, MovingPosition
from nearcast.runtime.live.udp import UdpLink, UdpNetwork

__all__ = [
    "FedPosition",
    "LiveClock",
    "LiveHost",
    "LiveRuntime",
    "MovingPosition",
    "UdpLink",
    "UdpNetwork",
    "run_until_stopped",
]
