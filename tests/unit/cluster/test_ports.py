"""Ports of the components of a cluster without a node."""

import socket

import pytest

from cluster import record
from cluster.errors import ClusterError
from cluster.plan import PORT_NAMES
from support.ports import free_port

LOWEST_OUTGOING = 32768
"""The default of Linux: the first value of net.ipv4.ip_local_port_range."""


def test_each_component_has_its_own_port_below_those_of_outgoing_connections() -> None:
    found = record.free_ports(())
    assert found.keys() == set(PORT_NAMES)
    assert len(set(found.values())) == len(PORT_NAMES)
    assert all(port < LOWEST_OUTGOING for port in found.values())


def test_ports_of_other_clusters_and_ports_in_use_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port()
    monkeypatch.setattr(record, "PORTS", range(first, first + 20))
    with socket.create_server(("127.0.0.1", first)):
        found = record.free_ports([first + 1])
    assert not {first, first + 1} & set(found.values())


def test_error_names_the_range_if_too_few_ports_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "PORTS", range(15000, 15002))
    with pytest.raises(ClusterError, match="no free ports on loopback from 15000 to 15001"):
        record.free_ports(())
