"""Ports of the container and of the Service. Each row: the ports of the spec, and the result."""

from typing import Any

import pytest

from memcached_api.appservice.types import decode_spec
from memcached_api.kubernetes import ServicePort
from memcached_operator.appservice.desired.ports import container_ports, service_ports

Ports = list[dict[str, Any]]


def ports(entries: Ports) -> list[ServicePort]:
    """The decoded ports of a spec."""
    return decode_spec({"spec": {"image": "a", "ports": entries}}).ports


def live(*entries: tuple[int, int, str | None]) -> Ports:
    """The ports of a Service: number, node port and name."""
    return [
        {"port": number, "nodePort": node_port, "protocol": "TCP", "targetPort": 80} | ({"name": name} if name else {})
        for number, node_port, name in entries
    ]


CONTAINER: dict[str, tuple[Ports, list[tuple[int, str, str | None]]]] = {
    "the port itself": ([{"port": 80}], [(80, "TCP", None)]),
    "the target port": ([{"port": 80, "targetPort": 8080}], [(8080, "TCP", None)]),
    "a name that no target refers to is omitted": ([{"port": 80, "name": "http"}], [(80, "TCP", None)]),
    "two ports with one target": (
        [{"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": 8080}],
        [(8080, "TCP", None)],
    ),
    "one number with two protocols": (
        [{"port": 53}, {"port": 53, "protocol": "UDP"}],
        [(53, "TCP", None), (53, "UDP", None)],
    ),
    "a name that a target refers to": (
        [{"port": 80, "name": "http", "targetPort": 8080}, {"port": 81, "targetPort": "http"}],
        [(8080, "TCP", "http")],
    ),
    "a target number equal to the name of another port": (
        [{"port": 80, "name": "8080", "targetPort": 9000}, {"port": 81, "name": "x", "targetPort": 8080}],
        [(8080, "TCP", None), (9000, "TCP", None)],
    ),
    "the order of the spec does not matter": (
        [{"port": 53, "protocol": "UDP"}, {"port": 81}, {"port": 80}],
        [(80, "TCP", None), (81, "TCP", None), (53, "UDP", None)],
    ),
    "one target with two names": (
        [
            {"port": 80, "name": "a", "targetPort": 8080},
            {"port": 81, "name": "b", "targetPort": 8080},
            {"port": 82, "name": "c", "targetPort": "b"},
            {"port": 83, "name": "d", "targetPort": "a"},
        ],
        [(8080, "TCP", "a")],
    ),
}


@pytest.mark.parametrize(("entries", "expected"), CONTAINER.values(), ids=CONTAINER.keys())
def test_container_ports(entries: Ports, expected: list[tuple[int, str, str | None]]) -> None:
    found = container_ports(ports(entries))
    assert [(entry["containerPort"], entry["protocol"], entry.get("name")) for entry in found] == expected


def test_named_targets_of_the_service_are_container_port_names() -> None:
    entries, (container,) = CONTAINER["one target with two names"][0], CONTAINER["one target with two names"][1]
    targets = [entry["targetPort"] for entry in service_ports(ports(entries), [])]
    assert targets == [8080, 8080, container[2], container[2]]


HTTP, ONE = (80, 31000, "http"), (80, 31000, None)
KEPT: dict[str, tuple[Ports, Ports, list[int | None]]] = {
    "no Service yet": ([{"port": 80}], [], [None]),
    "unchanged": ([{"port": 80}], live(ONE), [31000]),
    "another number, no name": ([{"port": 81}], live(ONE), [31000]),
    "another number, same name": ([{"port": 81, "name": "http"}], live(HTTP), [31000]),
    "another name, same number": ([{"port": 80, "name": "web"}], live(HTTP), [31000]),
    "another name and number": ([{"port": 81, "name": "web"}], live(HTTP), [None]),
    "a name for a port without one": ([{"port": 80, "name": "web"}], live(ONE), [31000]),
    "a second port": ([{"port": 80}, {"port": 81}], live(ONE), [31000, None]),
    "another protocol": ([{"port": 80, "protocol": "UDP"}], live(ONE), [None]),
    "the number has precedence over the name": (
        [{"port": 80, "name": "http"}],
        live((8080, 31001, "http"), (80, 31000, "web")),
        [31000],
    ),
    "two ports that swap their numbers": (
        [{"port": 81, "name": "a"}, {"port": 80, "name": "b"}],
        live((80, 31000, "a"), (81, 31001, "b")),
        [31001, 31000],
    ),
    "a port that takes the number of another": (
        [{"port": 81, "name": "a"}, {"port": 80, "name": "b"}],
        live((80, 31000, "a")),
        [None, 31000],
    ),
    "a node port in the spec has precedence": ([{"port": 80, "nodePort": 30001}], live(ONE), [30001]),
    "a node port that the spec assigns to another port": (
        [{"port": 80}, {"port": 81, "nodePort": 31000}],
        live(ONE),
        [0, 31000],
    ),
    "one of several unnamed ports changes its number": (
        [{"port": 8080}, {"port": 81}],
        live((80, 31000, "tcp-80"), (81, 31001, "tcp-81")),
        [31000, 31001],
    ),
    "the only unnamed port changes its number": (
        [{"port": 8080}, {"port": 82, "name": "b"}],
        live((80, 31000, "tcp-80"), (81, 31001, "b")),
        [31000, 31001],
    ),
    "two unnamed ports change their numbers": (
        [{"port": 8080}, {"port": 8081}],
        live((80, 31000, "tcp-80"), (81, 31001, "tcp-81")),
        [None, None],
    ),
    "a name and another number for an unnamed port": ([{"port": 8080, "name": "web"}], live(ONE), [None]),
    "a Service without node ports": ([{"port": 80}], [{"port": 80, "protocol": "TCP"}], [None]),
}


@pytest.mark.parametrize(("entries", "current", "expected"), KEPT.values(), ids=KEPT.keys())
def test_node_port_in_use_is_kept(entries: Ports, current: Any, expected: list[int | None]) -> None:
    assert [entry.get("nodePort") for entry in service_ports(ports(entries), current)] == expected
