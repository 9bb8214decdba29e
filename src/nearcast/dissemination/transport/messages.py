"""What hosts say to each other about their transports."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from nearcast.runtime.messages import Message
from nearcast.transition.plan import LATEST, Initiator
from nearcast.transition.specification import MechanismSpec

PORT: Final = 7


class TransportMark(Message, frozen=True, tag="transport"):
    """Over which transport the sender speaks, and the plan that said so (as ``adhoc.messages.Mark`` says it of mechanisms)."""

    transport: MechanismSpec
    clock: Annotated[int, msgspec.Meta(ge=1, le=LATEST)]
    initiator: Initiator
