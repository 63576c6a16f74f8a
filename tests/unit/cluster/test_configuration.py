"""Rendered files and command lines."""

from pathlib import Path

import pytest

from cluster.node.network import destination, inside_commands
from cluster.paths import State
from cluster.plan import NODE_PORTS, Mode, Plan
from cluster.run.components import Programs, components

STATE = State(Path("/state/one"))
PROGRAMS = Programs(Path("/programs"), "/usr/bin/containerd")
MODES: list[Mode] = ["node", "control-plane"]


def plan(mode: Mode = "node") -> Plan:
    return Plan("one", mode, 2, dict(NODE_PORTS))


@pytest.mark.parametrize(("mode", "address"), [("node", "10.210.255.2"), ("control-plane", "127.0.0.1")])
def test_both_modes_have_the_same_authorization_and_admission(mode: Mode, address: str) -> None:
    (apiserver,) = (each for each in components(plan(mode), STATE, PROGRAMS) if each.name == "apiserver")
    assert {
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        f"--audit-log-path={STATE.audit_log}",
        f"--bind-address={address}",
    } <= set(apiserver.argv)


def test_network_namespace_has_no_default_route() -> None:
    assert not any("default" in command for command in inside_commands(plan()))


@pytest.mark.parametrize(
    ("route", "network"),
    [
        ({"dst": "default"}, None),
        ({"dst": "10.1.0.0/16"}, "10.1.0.0/16"),
        ({"dst": "10.1.2.3"}, "10.1.2.3/32"),
        ({}, None),
    ],
)
def test_destination(route: dict[str, str], network: str | None) -> None:
    found = destination(route)
    assert (str(found) if found else None) == network
