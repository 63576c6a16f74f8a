"""Names, slots and addresses."""

import ipaddress

import pytest

from cluster.errors import ClusterError
from cluster.plan import NODE_PORTS, SLOTS, Mode, Plan, check_name, free_slot, overlaps


def plan(slot: int = 0, mode: Mode = "node") -> Plan:
    return Plan("some-name", mode, slot, dict(NODE_PORTS))


@pytest.mark.parametrize("name", ["a", "memcached-operator", "second-123", "a" * 40])
def test_valid_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "1a", "a/b", "a b", "a.b", "..", "a" * 41])
def test_invalid_names(name: str) -> None:
    with pytest.raises(ClusterError, match="CLUSTER_NAME"):
        check_name(name)


@pytest.mark.parametrize(
    ("in_use", "used", "slot"),
    [
        ([], [], 0),
        ([0, 1, 3], [], 2),
        ([], ["10.208.0.0/20"], 1),
        ([0], ["10.209.255.0/30", "192.0.2.0/24"], 2),
        ([], ["10.208.0.0/14"], 4),
    ],
)
def test_free_slot(in_use: list[int], used: list[str], slot: int) -> None:
    assert free_slot(in_use, map(ipaddress.IPv4Network, used)) == slot


def test_all_slots_in_use() -> None:
    with pytest.raises(ClusterError, match="in use"):
        free_slot(range(SLOTS), [])


@pytest.mark.parametrize("slot", range(SLOTS))
def test_addresses_stay_in_the_slot(slot: int) -> None:
    known = plan(slot)
    for network in (known.pod_cidr, known.service_cidr, known.node_address, known.host_address):
        assert overlaps(slot, [ipaddress.IPv4Network(network)])
        assert not any(overlaps(other, [ipaddress.IPv4Network(network)]) for other in range(SLOTS) if other != slot)


def test_pods_services_and_link_do_not_overlap() -> None:
    known = plan()
    parts = [ipaddress.IPv4Network(each) for each in (known.pod_cidr, known.service_cidr, f"{known.block}.255.0/30")]
    assert not any(one.overlaps(other) for one in parts for other in parts if one is not other)


def test_loopback_without_a_node() -> None:
    assert plan(mode="control-plane").server == "https://127.0.0.1:6443"
    assert plan().server == "https://10.208.255.2:6443"


def test_link_name_fits() -> None:
    assert len(plan(SLOTS - 1).link) <= 15


def test_round_trip() -> None:
    assert Plan(**plan(3).to_json()) == plan(3)
