"""What comes over two transports at once is one message; what is said again is another."""

from nearcast.dissemination.adhoc.messages import Hello, Mark
from nearcast.dissemination.transport.twins import WITHIN, Twins
from nearcast.transition.specification import MechanismSpec

HELLO = Hello(Mark(MechanismSpec("HYPERG")))
TENTH = 100_000


def test_what_one_transport_brought_long_ago_is_no_twin() -> None:
    twins = Twins()
    for number in range(50):  # farther away than the other one reaches
        assert not twins.second("wifi", "bob", HELLO, number * TENTH)
    later = 49 * TENTH + WITHIN + 1
    assert not twins.second("bluetooth", "bob", HELLO, later), "he has ended the other, and is near now"


def test_nothing_is_remembered_of_what_has_found_its_twin_or_never_will() -> None:
    twins = Twins()
    for number in range(1_000):
        for interface in ("wifi", "bluetooth"):
            twins.second(interface, f"h{number}", HELLO, number * TENTH)
        twins.second("wifi", f"far {number}", HELLO, number * TENTH)
    assert len(twins._ahead) <= WITHIN // TENTH + 1
