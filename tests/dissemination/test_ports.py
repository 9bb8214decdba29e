"""Whatever may run on one host has a port of its own."""

from nearcast.dissemination import cloud_messages
from nearcast.dissemination.adhoc import carrier
from nearcast.dissemination.gateways import messages as gateways
from nearcast.dissemination.gateways import spreading
from nearcast.dissemination.transport import messages as transport
from nearcast.transition import agent


def test_no_two_share_a_port() -> None:
    ports = [each.PORT for each in (cloud_messages, carrier, agent, gateways, spreading, transport)]
    assert len(set(ports)) == len(ports)
