"""What hosts are told later than it happens, many things at a time.

Most messages reach hosts that only keep books of them.  To call such a host for each costs more than what it does then.  So it
may lag behind the clock, as long as nobody can tell: before anything else happens to it, or anybody looks, it catches up.
"""

from __future__ import annotations

from nearcast.runtime.ports import Address


class Backlog:
    """Hosts that lag behind; here, none does."""

    def catch_up(self) -> None:
        """Tell everybody of all that comes before what happens now."""

    def catch_up_for(self, host: Address) -> None:
        """The same, if there is something that this host was not told."""
