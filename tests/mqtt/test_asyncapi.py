"""docs/asyncapi.yaml and docs/mqtt.md say what the code does, no less and no more."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nearcast.model import area_text, value_text
from nearcast.mqtt import names
from nearcast.mqtt.names import ReservedTopic
from nearcast.mqtt.positions import context_in, point_in, position_in
from nearcast.mqtt.publication import delivered_event, publication
from nearcast.mqtt.requests import subscription_request

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT: dict[str, Any] = msgspec.yaml.decode((DOCS / "asyncapi.yaml").read_bytes())
SCHEMAS = DOCUMENT["components"]["schemas"]
PEOPLE = (DOCS / "mqtt.md").read_text()
PARSER = "@asyncapi/parser@3.6.3"
PARSE = """
const { Parser } = require('@asyncapi/parser');
const text = require('fs').readFileSync(process.argv[1], 'utf8');
new Parser().parse(text).then(({ document, diagnostics }) => console.log(JSON.stringify(
  { valid: document !== undefined, problems: diagnostics.filter((found) => found.severity < 2).map((found) => found.message) }
)));
"""

FOR_PRESENCE = {
    names.STAY: ("$nearcast/presence/stay/+", [(names.AREA, '{"circle": 500, "at": [8.6512, 49.8728]}')]),
    names.AROUND: ("$nearcast/presence/near/+", [(names.AREA, "50")]),
}
"""Where a property stands that is for presence only, and what must stand beside it."""

PROPERTIES = {
    "PublishProperties": names.PUBLISH_PROPERTIES,
    "DeliveryProperties": names.DELIVERY_PROPERTIES,
    "SubscribeProperties": names.SUBSCRIBE_PROPERTIES,
    "UnsubscribeProperties": names.UNSUBSCRIBE_PROPERTIES,
    "ConnectProperties": frozenset({names.SCHEMES}),
}


def nodes(tree: Any) -> Iterator[Any]:
    yield tree
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from nodes(inner)


def found(reference: str) -> Any:
    node: Any = DOCUMENT
    for step in reference.removeprefix("#/").split("/"):
        node = node[step]
    return node


def examples(schema: str, name: str) -> list[str]:
    given = SCHEMAS[schema]["properties"][name].get("examples", [])
    assert all(isinstance(one, str) for one in given), "a user property is a text"
    return list(given)


@pytest.mark.parametrize("schema", PROPERTIES)
def test_the_properties_are_those_of_the_contract(schema: str) -> None:
    assert set(SCHEMAS[schema]["properties"]) == PROPERTIES[schema]


def test_the_channels_are_the_topics_of_the_contract() -> None:
    rest = {
        "context/": "{name}",
        "announce/": "{topic}",
        "more/": "{filter}",
        "enough/": "{filter}",
        "presence/": "{kind}/{client}",
    }
    reserved = {kind.topic + rest.get(kind.value, "") for kind in ReservedTopic}
    addresses = {channel["address"] for channel in DOCUMENT["channels"].values()}
    assert addresses == {"{topic}", f"{names.PREFIX}{{options}}/{{topic}}"} | reserved


def test_the_values_and_areas_are_those_of_the_contract() -> None:
    values = {kind for form in SCHEMAS["AttributeValue"]["oneOf"] for kind in form.get("required", ())}
    assert values == set(value_text._KINDS)
    shapes = {kind for form in SCHEMAS["Area"]["oneOf"] for kind in form.get("required", ())}
    assert shapes == set(area_text._SHAPES) | {"type", "coordinates"}


def test_the_document_for_people_has_every_name_and_no_other() -> None:
    known = frozenset().union(*PROPERTIES.values())
    assert set(re.findall(r"\bnc-[a-z]+", PEOPLE)) == known
    for kind in ReservedTopic:
        assert f"`{kind.topic}" in PEOPLE
    shown = set(re.findall(r"\$nearcast/([a-z]+)", PEOPLE))
    assert shown == {kind.value.rstrip("/") for kind in ReservedTopic}
    for form in (*value_text._KINDS, *area_text._SHAPES):
        assert f'{{"{form}": ' in PEOPLE


def test_every_example_can_be_read() -> None:
    for name in names.PUBLISH_PROPERTIES:
        for text in examples("PublishProperties", name):
            read = publication("t", b"", [(name, text)])
            read.event("e", 0, None, point_in("49.8,8.6"))
    for name in names.SUBSCRIBE_PROPERTIES:
        for text in examples("SubscribeProperties", name):
            topic, area = FOR_PRESENCE.get(name, ("t", []))
            subscription_request(topic, [(name, text), *area]).subscription(1_800_000_000_000_000)
    for tree in SCHEMAS["Area"]["examples"]:
        area_text.area_in(json.dumps(tree))
    messages = DOCUMENT["components"]["messages"]
    for one in messages["position"]["examples"]:
        assert position_in(json.dumps(one["payload"]).encode()) is not None
    for one in messages["context"]["examples"]:
        assert context_in(json.dumps(one["payload"]).encode()) is not None
    (published,), (delivered,) = messages["publication"]["examples"], messages["delivery"]["examples"]
    publication("t", b"", published["headers"].items()).event("e", 0, None, None)
    delivered_event("t", b"", delivered["headers"].items(), None, id="e", received=0)


def test_every_example_of_the_prefix_can_be_read() -> None:
    wanted, published = DOCUMENT["channels"]["prefixed"]["parameters"]["options"]["examples"]
    assert subscription_request(f"$near/{wanted}/traffic/#").addressed
    assert publication(f"$near/{published}/traffic/jam", b"").addressed
    prefixed = re.findall(r"'(\$near/[^']+)'", PEOPLE)
    assert len(prefixed) == 2
    for text in prefixed:
        assert "#" not in text or subscription_request(text).addressed
        assert "#" in text or publication(text, b"").addressed


def test_every_reference_leads_somewhere() -> None:
    references = [node["$ref"] for node in nodes(DOCUMENT) if isinstance(node, dict) and "$ref" in node]
    assert references
    for reference in references:
        assert found(reference) is not None


def test_operations_and_channels_fit_together() -> None:
    """The rules of AsyncAPI 3 that a slip of the pen would break."""
    assert DOCUMENT["asyncapi"] == "3.0.0"
    used = set()
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in {"send", "receive"}
        channel = operation["channel"]["$ref"]
        used.add(channel)
        for message in operation["messages"]:
            assert message["$ref"].startswith(f"{channel}/messages/")
        bindings = operation["bindings"]
        assert set(found(bindings["$ref"]) if "$ref" in bindings else bindings) == {"mqtt"}
    assert used == {f"#/channels/{name}" for name in DOCUMENT["channels"]}, "nothing stands there unused"
    for channel in DOCUMENT["channels"].values():
        assert set(re.findall(r"{(\w+)}", channel["address"])) == set(channel.get("parameters", {}))


@pytest.mark.slow
def test_the_official_parser_finds_nothing_wrong(pytestconfig: pytest.Config) -> None:
    folder = _parser(pytestconfig)
    answer = subprocess.run(
        ["node", "-e", PARSE, str(DOCS / "asyncapi.yaml")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(answer.stdout) == {"valid": True, "problems": []}


def _parser(config: pytest.Config) -> Path:
    """Where the parser is installed; it is kept among what pytest keeps."""
    cache = config.cache
    if cache is None or shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm and node are needed")
    folder = cache.mkdir("asyncapi-parser")
    if not (folder / "installed").exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), PARSER]
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=180)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            pytest.skip(f"{PARSER} could not be installed")
        (folder / "installed").touch()
    return folder
