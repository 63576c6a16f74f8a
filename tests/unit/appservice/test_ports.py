"""How ports become ports of the container and of the Service; each row is the spec's ports, and what comes of them."""

from typing import Any

import pytest

from memcached_api.appservice import decode_spec
from memcached_api.kubernetes import ServicePort
from memcached_operator.appservice.desired.ports import container_ports, service_ports

Ports = list[dict[str, Any]]


def ports(entries: Ports) -> list[ServicePort]:
    """The ports of a spec, as the operator reads them."""
    return decode_spec({"spec": {"image": "a", "ports": entries}}).ports


def live(*entries: tuple[int, int, str | None]) -> Ports:
    """The ports of a Service: number, node port and name."""
    return [
        {"port": number, "nodePort": node_port, "protocol": "TCP", "targetPort": 80} | ({"name": name} if name else {})
        for number, node_port, name in entries
    ]


CONTAINER: dict[str, tuple[Ports, list[tuple[int, str, str | None]]]] = {
    "the port itself": ([{"port": 80}], [(80, "TCP", None)]),
    "the target": ([{"port": 80, "targetPort": 8080}], [(8080, "TCP", None)]),
    "a name that nobody says is left out": ([{"port": 80, "name": "http"}], [(80, "TCP", None)]),
    "one target of two ports": (
        [{"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": 8080}],
        [(8080, "TCP", None)],
    ),
    "one number of two protocols": (
        [{"port": 53}, {"port": 53, "protocol": "UDP"}],
        [(53, "TCP", None), (53, "UDP", None)],
    ),
    "a name that is said": (
        [{"port": 80, "name": "http", "targetPort": 8080}, {"port": 81, "targetPort": "http"}],
        [(8080, "TCP", "http")],
    ),
    "a number that is another one's name": (
        [{"port": 80, "name": "8080", "targetPort": 9000}, {"port": 81, "name": "x", "targetPort": 8080}],
        [(8080, "TCP", None), (9000, "TCP", None)],
    ),
    "the order of the spec does not matter": (
        [{"port": 53, "protocol": "UDP"}, {"port": 81}, {"port": 80}],
        [(80, "TCP", None), (81, "TCP", None), (53, "UDP", None)],
    ),
    "two names of one target": (
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
def test_the_container_has_what_the_program_listens_on(
    entries: Ports, expected: list[tuple[int, str, str | None]]
) -> None:
    found = container_ports(ports(entries))
    assert [(entry["containerPort"], entry["protocol"], entry.get("name")) for entry in found] == expected


def test_every_name_a_service_says_is_one_of_the_container() -> None:
    entries, (container,) = CONTAINER["two names of one target"][0], CONTAINER["two names of one target"][1]
    targets = [entry["targetPort"] for entry in service_ports(ports(entries), [])]
    assert targets == [8080, 8080, container[2], container[2]]


def test_a_port_has_what_the_spec_says_and_no_more() -> None:
    (bare,) = service_ports(ports([{"port": 80}]), [])
    assert bare == {"port": 80, "protocol": "TCP", "targetPort": 80}
    full = {"name": "a", "port": 80, "protocol": "UDP", "targetPort": 81, "nodePort": 30001, "appProtocol": "b"}
    assert service_ports(ports([full]), []) == [full]


HTTP, ONE = (80, 31000, "http"), (80, 31000, None)
KEPT: dict[str, tuple[Ports, Ports, list[int | None]]] = {
    "nothing is there yet": ([{"port": 80}], [], [None]),
    "as it is": ([{"port": 80}], live(ONE), [31000]),
    "another number, no name": ([{"port": 81}], live(ONE), [31000]),
    "another number, same name": ([{"port": 81, "name": "http"}], live(HTTP), [31000]),
    "another name, same number": ([{"port": 80, "name": "web"}], live(HTTP), [31000]),
    "another name and number": ([{"port": 81, "name": "web"}], live(HTTP), [None]),
    "a name for what had none": ([{"port": 80, "name": "web"}], live(ONE), [31000]),
    "a second one": ([{"port": 80}, {"port": 81}], live(ONE), [31000, None]),
    "another protocol": ([{"port": 80, "protocol": "UDP"}], live(ONE), [None]),
    "the number goes before the name": (
        [{"port": 80, "name": "http"}],
        live((8080, 31001, "http"), (80, 31000, "web")),
        [31000],
    ),
    "two that change their numbers": (
        [{"port": 81, "name": "a"}, {"port": 80, "name": "b"}],
        live((80, 31000, "a"), (81, 31001, "b")),
        [31001, 31000],
    ),
    "one that takes the number of another": (
        [{"port": 81, "name": "a"}, {"port": 80, "name": "b"}],
        live((80, 31000, "a")),
        [None, 31000],
    ),
    "a named one wins": ([{"port": 80, "nodePort": 30001}], live(ONE), [30001]),
    "one that the spec gives to another": (
        [{"port": 80}, {"port": 81, "nodePort": 31000}],
        live(ONE),
        [0, 31000],
    ),
    "one of several without names that changes its number": (
        [{"port": 8080}, {"port": 81}],
        live((80, 31000, "tcp-80"), (81, 31001, "tcp-81")),
        [31000, 31001],
    ),
    "the one without a name, beside a named one": (
        [{"port": 8080}, {"port": 82, "name": "b"}],
        live((80, 31000, "tcp-80"), (81, 31001, "b")),
        [31000, 31001],
    ),
    "two without names that change their numbers": (
        [{"port": 8080}, {"port": 8081}],
        live((80, 31000, "tcp-80"), (81, 31001, "tcp-81")),
        [None, None],
    ),
    "a new name for one without a name, and another number": (
        [{"port": 8080, "name": "web"}],
        live(ONE),
        [None],
    ),
    "a Service that has no node ports yet": ([{"port": 80}], [{"port": 80, "protocol": "TCP"}], [None]),
}


@pytest.mark.parametrize(("entries", "there", "expected"), KEPT.values(), ids=KEPT.keys())
def test_the_node_port_in_use_stays(entries: Ports, there: Ports, expected: list[int | None]) -> None:
    assert [entry.get("nodePort") for entry in service_ports(ports(entries), there)] == expected
