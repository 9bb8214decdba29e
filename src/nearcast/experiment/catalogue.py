"""All experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.experiment.adaptive_planning import ADAPTIVE_PLANNING
from nearcast.experiment.adhoc.constants import CONSTANTS
from nearcast.experiment.adhoc.gossip import A6
from nearcast.experiment.adhoc.healing import E8
from nearcast.experiment.adhoc.pure import E5
from nearcast.experiment.adhoc.scalability import A5
from nearcast.experiment.adhoc.told_by_plan import E7
from nearcast.experiment.coexistence.ad_hoc import E9
from nearcast.experiment.coexistence.density import E11
from nearcast.experiment.contextcast.adapting import CE6, CE7, CE8, CE9
from nearcast.experiment.contextcast.calculated import CE14
from nearcast.experiment.contextcast.coarseness import CE1, CE2, CE3
from nearcast.experiment.contextcast.future import CE16, CE18
from nearcast.experiment.contextcast.past import CE10, CE11, CE12, CE13
from nearcast.experiment.contextcast.thresholds import CE4, CE5
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.hybrid.gateways import E10
from nearcast.experiment.hybrid.modes import E6
from nearcast.experiment.lcn import LCN
from nearcast.experiment.parameters_compared import A2, A3, A4
from nearcast.experiment.partial_transitions import E4
from nearcast.experiment.schemes_compared import A1
from nearcast.experiment.self_transitions import E3
from nearcast.experiment.steam.accuracy import ST4, ST5
from nearcast.experiment.steam.cost import ST1
from nearcast.experiment.steam.filtering import ST2
from nearcast.experiment.steam.latency import ST3
from nearcast.experiment.thyme.static import TH1, TH2
from nearcast.experiment.thyme.sweep import SWEEP
from nearcast.experiment.thyme.unstable import LOSS, TH3, TH4, TH5
from nearcast.experiment.total_transitions import E1, E2

BYPASS: Final = (E1, E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, A1, A2, A3, A4, A5, A6, CONSTANTS)
STEAM: Final = (ST1, ST2, ST3, ST4, ST5)
THYME: Final = (TH1, TH2, TH3, TH4, TH5, SWEEP, LOSS)
CONTEXTCAST: Final = (CE1, CE2, CE3, CE4, CE5, CE6, CE7, CE8, CE9, CE10, CE11, CE12, CE13, CE14, CE16, CE18)


@dataclass(frozen=True, slots=True)
class Document:
    """What experiments repeat."""

    name: str
    about: str
    experiments: tuple[Experiment, ...]


DOCUMENTS: Final = (
    Document(
        "LCN 2016", "A paper: filter schemes of a broker are exchanged at run time, and nobody should notice.", (LCN,)
    ),
    Document(
        "BYPASS.KOM",
        "A thesis: filter schemes and ways from host to host are exchanged for all, for some, or around attraction points.",
        BYPASS,
    ),
    Document("STEAM", "A paper: producers say where their events matter, and devices nearby hear of them.", STEAM),
    Document(
        "Contextcast",
        "A thesis: routers bring messages to whoever is, was or will be in a context, and tell each other as little as they can.",
        CONTEXTCAST,
    ),
    Document("THYME", "A paper: a crowd without a broker keeps what it publishes, for the past and the future.", THYME),
    Document("nearcast", "No document: our own claims.", (ADAPTIVE_PLANNING,)),
)
EXPERIMENTS: Final = tuple(experiment for document in DOCUMENTS for experiment in document.experiments)
