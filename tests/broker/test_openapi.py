"""Requests that schemathesis makes of the OpenAPI description, good and bad: every answer is one that the description names.

The whole interface, the dashboard's part included, of a real broker: with the credentials of somebody who may do everything, with those of somebody who
may do nothing, and with none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.documents import ROOT
from tests.effort import campaign
from tests.served import COMMAND, ServedBroker, served

PASSWORD = "secret-word"  # noqa: S105 - of a broker that lives for a minute
RULES = """
[access]
anonymous = "never"

[dashboard]
enabled = true

[[access.rule]]
users = ["operator"]
publish = ["#"]
subscribe = ["#"]
may_address = true
query = true
plans = true

[[access.rule]]
users = ["nobody"]
publish = ["nothing"]
"""
LANGUAGES = (
    "GET /events",  # filters, times and areas are languages of their own, and since must be before until
    "POST /events",
    "POST /plans",  # a plan that changes nothing is none
    "POST /transitions",
    "GET /dashboard/api/sessions",  # by which column, is a column of the table
    "GET /dashboard/api/subscriptions",
    "GET /dashboard/api/past",
    "POST /dashboard/api/transitions",
    "PUT /dashboard/api/rules",
)
"""Here a text that the description allows may still be none that means something: that it is told, with 400 or 422, is right."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    folder = tmp_path_factory.mktemp("broker")
    for user in ("operator", "nobody"):
        subprocess.run(
            [str(COMMAND), "user", "add", user, "--data", str(folder / "data")],
            input=f"{PASSWORD}\n",
            text=True,
            check=True,
            capture_output=True,
        )
    with served(folder, RULES) as broker:
        yield broker


def tried(broker: ServedBroker, folder: Path, examples: int, *more: str) -> None:
    """All checks find nothing, and the broker has made no mistake."""
    config = folder / "schemathesis.toml"
    allowed = '["2xx", "3xx", "400", "401", "403", "404", "409", "413", "422", "429", "5xx"]'
    operations = "\n".join(
        f'[[operations]]\ninclude-name = "{name}"\n[operations.checks]\npositive_data_acceptance.expected-statuses = {allowed}\n'
        for name in LANGUAGES
    )
    config.write_text(f"[output.sanitization]\nenabled = false\n{operations}")
    arguments = [
        str(Path(sys.executable).with_name("schemathesis")),
        *("--config-file", str(config), "run", f"{broker.http}/schema/openapi.json"),
        *("--checks", "all", "--max-examples", str(examples), "--seed", "1", "--no-color", "--workers", "2"),
        *("--suppress-health-check", "all", "--request-timeout", "60", "--warnings", "off", *more),
    ]
    hooks = {"SCHEMATHESIS_HOOKS": "tests.broker.openapi_hooks", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        arguments, cwd=folder, env={**os.environ, **hooks}, capture_output=True, text=True, check=False, timeout=1_800
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
    assert httpx.get(f"{broker.http}/healthz").text == "ok\n"
    assert not [line for line in broker.said if "Traceback" in line or " failed" in line], broker.said[-40:]


def test_the_description_is_kept_by_whoever_may(broker: ServedBroker, tmp_path: Path) -> None:
    tried(broker, tmp_path, 5, "--auth", f"operator:{PASSWORD}", "--phases", "examples,coverage,fuzzing")


@pytest.mark.parametrize("auth", [("--auth", f"nobody:{PASSWORD}"), ()], ids=["may nothing", "nobody"])
def test_the_description_is_kept_by_whoever_may_not(
    broker: ServedBroker, tmp_path: Path, auth: tuple[str, ...]
) -> None:
    tried(broker, tmp_path, 3, *auth, "--phases", "fuzzing")


@campaign
def test_the_description_is_kept_through_thousands_of_requests(broker: ServedBroker, tmp_path: Path) -> None:
    # Words of a query that nobody knows are ignored, as is usual, and credentials that were left out are put back by --auth: of
    # thousands of requests some are "wrong" in nothing but these, which the short form's examples are not.
    tried(broker, tmp_path, 200, "--auth", f"operator:{PASSWORD}", "--exclude-checks", "negative_data_rejection")


def test_all_operations_are_described(broker: ServedBroker) -> None:
    document = httpx.get(f"{broker.http}/schema/openapi.json").json()
    paths = set(document["paths"])
    assert {"/events", "/explain", "/metrics", "/dashboard/api/sessions", "/dashboard/api/rules"} <= paths
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            for status, answer in operation["responses"].items():
                if int(status) >= 400 and path != "/readyz":
                    assert list(answer["content"]) == ["application/problem+json"], (method, path, status)


@pytest.mark.parametrize(
    "path", ["/journal?first={}", "/journal/stretches?first={}&last={}", "/journal/stretches?first=0&last=1&since={}"]
)
def test_offsets_beyond_all_are_refused(broker: ServedBroker, path: str) -> None:
    """Of the long campaign: the database cannot even ask for them."""
    answer = httpx.get(broker.http + path.format(2**64, 2**64), auth=("operator", PASSWORD))
    assert answer.status_code == 400
