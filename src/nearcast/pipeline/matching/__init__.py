"""Who receives which events, for frames of any size: the definition of delivery, matched by the kernels of ``matching``."""

from nearcast.pipeline.matching.match import match
from nearcast.pipeline.matching.planner import MatchPlan, plan_match
from nearcast.pipeline.matching.settings import MatchSettings, Strategy

__all__ = ["MatchPlan", "MatchSettings", "Strategy", "match", "plan_match"]
