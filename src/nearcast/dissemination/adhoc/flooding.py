"""FLOODING: whoever hears an event for the first time sends it on, once (BYPASS.KOM 4.3.1)."""

from __future__ import annotations

from typing import Annotated, Final

from nearcast.dissemination.adhoc.hesitating import HESITATION, Hesitating, Hesitation
from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.spreading import Air, Manner, Spreading
from nearcast.model.geometry import Point
from nearcast.transition.declarations import Parameter


class Flooding(Manner, frozen=True, kw_only=True):
    """Everybody sends it on, once."""

    hesitation: Hesitation = HESITATION

    def mechanism(self, air: Air) -> Spreading:
        return FloodingSpreading(air, self.hesitation)


class FloodingSpreading(Hesitating):
    hesitation: Annotated[Hesitation, Parameter()]

    def __init__(self, air: Air, hesitation: float) -> None:
        super().__init__(air)
        self.hesitation = hesitation
        self._wait: Final = air.random("hesitation").random

    def heard(self, carried: Carried, _place: Point | None) -> None:
        self._hold(carried, self._wait() * self.hesitation)

    def _delay(self, _carried: Carried) -> float:
        return self._wait() * self.hesitation
