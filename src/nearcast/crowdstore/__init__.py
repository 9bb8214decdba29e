"""Publish/subscribe that remembers, without a broker (THYME): a crowd keeps what its members publish, and what they want.

Two mechanisms behind one interface (``storage.Storage``): ``publish_local`` keeps publications where they are made and tells everybody
every subscription (THYME-PL/SG); ``data_centric`` keeps both in the cells of a grid that their tags hash to (THYME-DCS).

``CrowdStore`` is a component of a host, simulated or live; ``nearcast.client.crowd_member`` makes a live host of it for asyncio.
"""

from nearcast.crowdstore.access import Identity, ReadingKey, Unreadable
from nearcast.crowdstore.bridge import Bridge
from nearcast.crowdstore.choosing import Choosing, Rule
from nearcast.crowdstore.formula import Formula
from nearcast.crowdstore.nucleus import Memory
from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey
from nearcast.crowdstore.registry import in_cells
from nearcast.crowdstore.service import CrowdStatistics, CrowdStore
from nearcast.crowdstore.storage import Failure, Outcome
from nearcast.transition.specification import MechanismSpec

__all__ = [
    "Bridge",
    "Choosing",
    "CrowdStatistics",
    "CrowdStore",
    "Failure",
    "Formula",
    "Identity",
    "MechanismSpec",
    "Memory",
    "Metadata",
    "ObjectKey",
    "Outcome",
    "ReadingKey",
    "Rule",
    "SubscriptionKey",
    "Unreadable",
    "in_cells",
]
