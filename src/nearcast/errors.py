"""Everything a caller may catch.

::

    NearcastError
    ├── InvalidInput (also a ValueError)   the input was refused and changed nothing
    │   ├── InvalidPosition                latitude, longitude or distance that cannot be
    │   ├── InvalidArea                    an area that encloses nothing or crosses itself
    │   ├── InvalidTime                    an instant, duration or time frame that cannot be read or ends before it starts
    │   ├── InvalidValue                   an attribute value outside the domain of its type, or an unknown type
    │   ├── InvalidPredicate               a filter with a syntax error, an unknown operator or operands that cannot meet
    │   │   └── FormulaTooLarge            a formula whose normal form exceeds the bound
    │   ├── InvalidTopic                   a topic or topic filter that MQTT forbids
    │   ├── InvalidEvent                   parts of an event that contradict each other
    │   ├── InvalidSubscription            parts of a subscription that contradict each other
    │   ├── InvalidContext                 a context or report that the client's history cannot take
    │   ├── InvalidScenario                a scenario file with an unknown key, a wrong unit or an impossible value
    │   ├── InvalidMap                     a map file that cannot be read, or that has no street to walk on
    │   ├── InvalidTrace                   a trace or operation log that cannot be read
    │   ├── InvalidRecord                  a row that does not fit its table, or a folder that is no recording
    │   └── InvalidPlan                    an execution plan, a specification or a rule that cannot be
    ├── UnknownName (also a LookupError)   no such client, subscription or context
    ├── HistoryNeeded                      the question is about the past or the future; the present cannot answer it
    ├── ObserverActed                      an analyzer or a metric tried to change what it only may watch
    ├── TransitionFailed                   a mechanism could not be exchanged; the old one goes on
    ├── SetupError                         the machine lacks something; the message says what to install
    └── BenchmarkError                     a benchmark could not be run or its systems disagree
"""


class NearcastError(Exception):
    """Root of all errors that nearcast raises on purpose."""


class InvalidInput(NearcastError, ValueError):
    """The input was refused; nothing was changed."""


class InvalidPosition(InvalidInput):
    """Latitude, longitude or distance that cannot be."""


class InvalidArea(InvalidInput):
    """An area that encloses nothing, crosses itself or is not closed."""


class InvalidTime(InvalidInput):
    """An instant, duration or time frame that cannot be read or ends before it starts."""


class InvalidValue(InvalidInput):
    """An attribute value outside the domain of its type, or of no known type."""


class InvalidPredicate(InvalidInput):
    """A filter with a syntax error, an unknown operator or operands that can never meet."""


class FormulaTooLarge(InvalidPredicate):
    """A formula whose disjunctive normal form exceeds the bound named in the message."""


class InvalidTopic(InvalidInput):
    """A topic or topic filter that MQTT forbids."""


class InvalidEvent(InvalidInput):
    """Parts of an event that contradict each other."""


class InvalidSubscription(InvalidInput):
    """Parts of a subscription that contradict each other."""


class InvalidContext(InvalidInput):
    """A context or report that the client's history cannot take."""


class InvalidScenario(InvalidInput):
    """A scenario file with an unknown key, a wrong unit or an impossible value."""


class InvalidMap(InvalidInput):
    """A map file that cannot be read, or that has no street to walk on."""


class InvalidTrace(InvalidInput):
    """A trace or operation log that cannot be read."""


class InvalidRecord(InvalidInput):
    """A row that does not fit its table, or a folder that is no recording."""


class UnknownName(NearcastError, LookupError):
    """No such client, subscription or context."""

    def __str__(self) -> str:
        # LookupError would show the message through repr().
        return str(self.args[0]) if self.args else ""


class HistoryNeeded(NearcastError):
    """The question is about the past or the future; the present alone cannot answer it."""


class ObserverActed(NearcastError):
    """An analyzer or a metric tried to change what it only may watch."""


class SetupError(NearcastError):
    """The machine lacks something that is needed; the message says what to install."""


class BenchmarkError(NearcastError):
    """A benchmark could not be run, or its systems disagree."""


class InvalidScheme(InvalidInput):
    """A filter scheme, or a part of one, with a parameter that cannot be."""


class InvalidPlan(InvalidInput):
    """An execution plan, a specification of a mechanism or a rule that cannot be."""


class TransitionFailed(NearcastError):
    """A mechanism could not be exchanged, or its state not be set; the old one goes on as if nothing had been asked."""
