"""Everything a caller may catch.

As a tree:

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
    │   ├── InvalidSettings                a settings or users file with an unknown key, a wrong value or an unsafe combination
    │   ├── InvalidProperty                a property, option or payload of the wire contract that cannot be read
    │   └── InvalidPlan                    an execution plan, a specification or a rule that cannot be
    ├── UnknownName (also a LookupError)   no such client, subscription or context
    ├── HistoryNeeded                      the question is about the past or the future; the present cannot answer it
    ├── ObserverActed                      an analyzer or a metric tried to change what it only may watch
    ├── TransitionFailed                   a mechanism could not be exchanged; the old one goes on
    ├── ChangedMeanwhile                   somebody else has changed what was to be changed
    ├── JournalFailed                      the journal cannot be opened, read or written; the message says what to do
    │   └── OffsetTrimmed                  what was asked for was deleted by retention
    ├── BackupFailed                       a backup cannot be made, read or restored; nothing half-done was left
    ├── JobFailed                          a job of the pipeline failed on Spark; the message is what Spark said
    ├── TableFailed                        a table of the pipeline cannot be read or changed; the message says what to do
    ├── Refused                            a client may not do what it asked for; carries an MQTT 5 reason code
    │   ├── NotAuthenticated               wrong user name or password, or nobody without one is let in here
    │   ├── Denied                         the access rules do not allow it
    │   └── QuotaExceeded                  too much, too many or too fast
    ├── ProtocolError                      bytes of the other side that MQTT forbids; carries the reason code to answer with
    ├── ConnectionFailed (also a ConnectionError)  the broker cannot be reached, or the connection is lost for good
    ├── TimedOut (also a TimeoutError)     the broker did not answer in time
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


class ChangedMeanwhile(NearcastError):
    """Somebody else has changed what was to be changed; it is as they left it."""


class InvalidSettings(InvalidInput):
    """A settings or users file with an unknown key, an impossible value or a combination that is not safe."""


class Refused(NearcastError):
    """A client may not do what it asked for; ``reason`` is the MQTT 5 reason code to answer with (OASIS MQTT 5.0, 2.4)."""

    usual_reason = 0x80
    """Unspecified error."""

    def __init__(self, message: str, reason: int | None = None) -> None:
        super().__init__(message)
        self.reason = self.usual_reason if reason is None else reason


class NotAuthenticated(Refused):
    """Wrong user name or password, or nobody without one is let in here."""

    usual_reason = 0x86
    """Bad user name or password."""


class Denied(Refused):
    """The access rules do not allow it."""

    usual_reason = 0x87
    """Not authorized."""


class QuotaExceeded(Refused):
    """Too much, too many or too fast."""

    usual_reason = 0x97
    """Quota exceeded."""

    def __init__(self, message: str, reason: int | None = None, *, wait: int = 0) -> None:
        super().__init__(message, reason)
        self.wait = wait
        """Microseconds after which it may be asked for again; 0: nobody knows."""


class InvalidProperty(InvalidInput):
    """A property, an option or a payload of the wire contract that cannot be read."""


class ProtocolError(NearcastError):
    """Bytes of the other side that MQTT forbids.

    ``reason`` is the MQTT 5 reason code to answer with, before the connection is closed; CONNACK and DISCONNECT share
    its numbers.
    """

    def __init__(self, message: str, reason: int) -> None:
        super().__init__(message)
        self.reason = reason


class JournalFailed(NearcastError):
    """The journal cannot be opened, read or written; what a failed write held is not on disk and never will be."""


class FolderInUse(JournalFailed):
    """Another process has the folder: a broker runs on it."""


class OffsetTrimmed(JournalFailed):
    """What was asked for was deleted by retention; ``oldest`` is the first offset that is left."""

    def __init__(self, message: str, oldest: int) -> None:
        super().__init__(message)
        self.oldest = oldest


class BackupFailed(NearcastError):
    """A backup cannot be made, read or restored; nothing half-done was left, and the message says what to do."""


class ConnectionFailed(NearcastError, ConnectionError):
    """The broker cannot be reached, or the connection is lost for good; the message says what to look at."""


class TimedOut(NearcastError, TimeoutError):
    """The broker did not answer in time; what was asked for may have happened all the same."""


class TableFailed(NearcastError):
    """A table of the pipeline cannot be read, or another run has changed it meanwhile; the message says what to do."""


class JobFailed(NearcastError):
    """A job of the pipeline failed on Spark; the message is what Spark said, and the cause has the rest."""
