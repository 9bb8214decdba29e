"""``nearcast explain`` against a real broker: as it was then, for who is gone too, and only for those who may know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.served import COMMAND, ServedBroker, served
from tests.waiting import free_port

import nearcast
from nearcast.cli import main

Output = pytest.CaptureFixture[str]
HERE, FAR = (49.8728, 8.6512), (49.9900, 8.6512)

RULES = """
[access]
anonymous = "never"
[[access.rule]]
name = "all"
users = ["*"]
publish = ["#"]
subscribe = ["#"]
[[access.rule]]
name = "operators"
users = ["operator"]
plans = true
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def explained(output: Output, broker: ServedBroker, *words: str) -> tuple[int, str, str]:
    output.readouterr()
    status = main(["explain", *words, f"--url={broker.http}"])
    said, complaint = output.readouterr()
    return status, said, complaint


def test_who_got_it_and_who_did_not_and_why_even_after_both_have_moved_and_gone(
    broker: ServedBroker, capsys: Output
) -> None:
    with (
        nearcast.connect_sync(broker.url, client_id="near", schemes=False) as near,
        nearcast.connect_sync(broker.url, client_id="far", schemes=False) as far,
        near.subscribe("traffic/#", within=500) as events,
        far.subscribe("traffic/#", within=500),
    ):
        near.update(lat=HERE[0], lon=HERE[1])
        far.update(lat=FAR[0], lon=FAR[1])
        event = near.publish("traffic/jam", b"slow", place=nearcast.Point(*HERE))
        events.next(60.0)
        near.update(lat=FAR[0], lon=FAR[1])
        far.update(lat=HERE[0], lon=HERE[1])
    for _ in range(2):  # as it was when it was published, whoever asks and whenever: also after a restart
        status, said, complaint = explained(capsys, broker, event, "near")
        assert (status, complaint) == (0, "")
        assert said.splitlines()[1:3] == [
            "was sent to near",
            f"yes delivered: event '{event}' is delivered to client 'near'",
        ]
        assert "yes area: the event is 0.0 m from the centre, radius 500 m" in said
        status, said, _ = explained(capsys, broker, event, "far")
        assert status == 0
        assert "was not sent to far" in said
        assert "no  area: the event is 13" in said
        broker.stop()
        broker.start()
    answer = json.loads(explained(capsys, broker, event, "far", "--json")[1])
    assert (answer["delivered"], answer["tree"]["ok"], answer["event"]["topic"]) == (False, False, "traffic/jam")
    assert httpx.get(f"{broker.http}/dashboard/api/explain", params={"event": event, "client": "far"}).json() == answer


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("none", "known"), "event 'none' is not recorded"),
        (("none", "nobody"), "no client 'nobody' is known here"),
        (("", "known"), "event"),
    ],
)
def test_what_nobody_knows_is_said_in_one_line(
    broker: ServedBroker, capsys: Output, words: tuple[str, str], why: str
) -> None:
    with nearcast.connect_sync(broker.url, client_id="known"):
        pass
    status, said, complaint = explained(capsys, broker, *words)
    assert (status, said) == (1, "")
    assert complaint.startswith("nearcast: the broker refuses: ")
    assert why in complaint
    assert len(complaint.splitlines()) == 1


def test_nobody_answers_where_no_broker_runs(capsys: Output) -> None:
    assert main(["explain", "e", "c", f"--url=http://127.0.0.1:{free_port()}"]) == 1
    assert "is `nearcast serve` running?" in capsys.readouterr().err


def test_only_who_may_see_the_broker_is_told(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    for user in ("operator", "ada"):
        subprocess.run(
            [str(COMMAND), "user", "add", user, "--data", str(tmp_path / "data")],
            input="secret-word\n",
            text=True,
            check=True,
            capture_output=True,
        )
    with served(tmp_path, RULES) as broker:
        monkeypatch.setenv("NEARCAST_PASSWORD", "secret-word")
        host = broker.http.removeprefix("http://")
        with nearcast.connect_sync(f"mqtt://ada:secret-word@127.0.0.1:{broker.port}", client_id="ada") as ada:
            event = ada.publish("news", b"x")
        for who, status, why in (
            ("operator@", 0, "was not sent to ada"),
            ("ada@", 1, "ask for a rule with plans = true"),
            ("", 1, "password"),
        ):
            capsys.readouterr()
            assert main(["explain", event, "ada", f"--url=http://{who}{host}"]) == status
            said, complaint = capsys.readouterr()
            if status:
                assert said == ""
                assert complaint.startswith("nearcast: the broker refuses: ")
                assert why in complaint
            else:
                assert why in said
            assert "secret-word" not in said + complaint
