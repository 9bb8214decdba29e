import pytest
from tests.transition.mechanisms import GRID, Engine, Located, Scheme

from nearcast.errors import TransitionFailed
from nearcast.transition.mechanism import Mechanism, Silence
from nearcast.transition.specification import NULL, MechanismSpec


class Talkative(Located):
    """Says something at one moment of its life."""

    def __init__(self, say: object, moment: str) -> None:
        super().__init__([])
        setattr(self, moment, lambda *_: say("hello"))  # type: ignore[operator]


def test_by_default_a_mechanism_has_nothing_to_do() -> None:
    class Idle(Mechanism):
        pass

    idle = Idle()
    idle.start_mechanism()
    idle.bootstrap()
    idle.members_joined(["ada"])
    idle.members_left(["ada"])
    idle.stop_mechanism()


def test_a_guarded_port_works_while_nothing_is_exchanged() -> None:
    said: list[str] = []
    silence = Silence()
    say = silence.guarded(said.append)
    say("before")
    with silence.kept(), silence.kept():
        assert silence
        with pytest.raises(TransitionFailed, match=r"belongs into bootstrap\(\)"):
            say("meanwhile")
    assert not silence
    say("after")
    assert said == ["before", "after"]


def test_an_exchange_within_another_does_not_end_the_silence() -> None:
    silence = Silence()
    with silence.kept():
        with silence.kept():
            pass
        assert silence


def test_the_silence_ends_also_when_what_happens_in_it_fails() -> None:
    silence = Silence()
    with pytest.raises(KeyError), silence.kept():
        raise KeyError
    assert not silence


@pytest.mark.parametrize("moment", ["start_mechanism", "bootstrap"])
def test_a_mechanism_may_talk_when_it_bootstraps_but_not_when_it_starts(moment: str) -> None:
    said: list[str] = []
    world = Engine(NULL)
    say = world.engine.silence.guarded(said.append)
    world.engine.create_proxy("other", Scheme, lambda _: Talkative(say, moment))
    if moment == "bootstrap":
        assert world.engine.execute("other", GRID)
        assert said == ["hello"]
    else:
        with pytest.raises(TransitionFailed, match="tried to send while it was being exchanged"):
            world.engine.execute("other", GRID)
        assert not said
        assert world.engine.proxy("other").active.known() == ()  # type: ignore[union-attr]


def test_nobody_talks_while_the_old_mechanism_is_stopped() -> None:
    said: list[str] = []
    world = Engine(NULL)
    say = world.engine.silence.guarded(said.append)
    proxy = world.engine.create_proxy("other", Scheme, lambda _: Talkative(say, "stop_mechanism"), GRID)
    with pytest.raises(TransitionFailed, match="tried to send"):
        world.engine.execute("other", MechanismSpec("X"))
    # The exchange itself was over by then.
    assert proxy.spec == MechanismSpec("X")
    assert not said
    assert not world.engine.switching
