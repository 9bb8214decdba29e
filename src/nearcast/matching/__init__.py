"""Find the receivers of events, fast and exactly."""

from nearcast.matching.events import EventBatch, Texts
from nearcast.matching.matcher import Matcher, MatcherStatistics
from nearcast.matching.matches import Matches, Receivers

__all__ = ["EventBatch", "Matcher", "MatcherStatistics", "Matches", "Receivers", "Texts"]
