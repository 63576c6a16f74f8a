"""Rendered files and command lines."""

import base64
import csv
import json
from pathlib import Path

import pytest

from cluster.node.network import destination, host_commands, inside_commands
from cluster.node.nodes import manifest
from cluster.paths import State
from cluster.plan import NODE_PORTS, Mode, Plan
from cluster.run import files
from cluster.run.accounts import P256_ORDER, Account, accounts, kubeconfig, signing_key, tokens_csv
from cluster.run.components import Programs, components

STATE = State(Path("/state/one"))
PROGRAMS = Programs(Path("/programs"), "/usr/bin/containerd")
MODES: list[Mode] = ["node", "control-plane"]


def plan(mode: Mode = "node") -> Plan:
    return Plan("one", mode, 2, dict(NODE_PORTS))


@pytest.mark.parametrize("mode", MODES)
def test_every_template_renders(mode: Mode) -> None:
    known = files.values(plan(mode), STATE)
    for template in {**files.COMMON, **files.BY_MODE[mode]}:
        assert "${" not in files.render((files.TEMPLATES / template).read_text(), known)


def test_unknown_name_in_a_template() -> None:
    with pytest.raises(KeyError):
        files.render("${nonsense}", {})


def test_every_template_is_used() -> None:
    used = {*files.COMMON, *files.ON_DEMAND, *(name for names in files.BY_MODE.values() for name in names)}
    assert used == {file.name for file in files.TEMPLATES.iterdir()}


def test_cni_configuration_is_json() -> None:
    text = files.render((files.TEMPLATES / "cni.conflist").read_text(), files.values(plan(), STATE))
    assert json.loads(text)["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.210.0.0/20"}]]


def test_order_of_components() -> None:
    control_plane = ["etcd", "apiserver", "controller-manager", "scheduler"]
    names = {mode: [each.name for each in components(plan(mode), STATE, PROGRAMS)] for mode in MODES}
    assert names["node"] == ["containerd", *control_plane, "kubelet", "proxy", "dns"]
    assert names["control-plane"] == [*control_plane, "kwok"]


@pytest.mark.parametrize("mode", MODES)
def test_both_modes_have_the_same_authorization_and_admission(mode: Mode) -> None:
    apiserver = components(plan(mode), STATE, PROGRAMS)[MODES.index("control-plane") if mode == "control-plane" else 2]
    assert "--authorization-mode=Node,RBAC" in apiserver.argv
    assert "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement" in apiserver.argv
    assert f"--audit-log-path={STATE.audit_log}" in apiserver.argv


def test_api_server_listens_on_loopback_without_a_node() -> None:
    apiserver = components(plan("control-plane"), STATE, PROGRAMS)[1]
    assert "--bind-address=127.0.0.1" in apiserver.argv


def test_components_are_json() -> None:
    for each in components(plan(), STATE, PROGRAMS):
        assert json.loads(json.dumps(each.to_json()))["probe"] == each.probe


def test_tokens() -> None:
    row = next(csv.reader([tokens_csv({Account("x", "user", ("one", "two")): "secret"}).strip()]))
    assert row == ["secret", "user", "user", "one,two"]
    assert len({account.file for account in accounts("n")}) == len(accounts("n"))


def test_kubelet_has_the_identity_of_the_node() -> None:
    kubelet = next(account for account in accounts("n") if account.file == "kubelet")
    assert (kubelet.user, kubelet.groups) == ("system:node:n", ("system:nodes",))


def test_kubeconfig() -> None:
    content = json.loads(kubeconfig("https://server", "secret", b"pem"))
    assert content["current-context"] == content["contexts"][0]["name"]
    cluster = content["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"pem"
    assert content["users"][0]["user"] == {"token": "secret"}


def test_signing_key_is_a_p256_key() -> None:
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    key = serialization.load_pem_private_key(signing_key().encode(), None)
    assert key.curve.name == "secp256r1"
    assert 0 < key.private_numbers().private_value < P256_ORDER


def test_link_commands() -> None:
    outside = [" ".join(command) for command in host_commands(plan(), 77)]
    assert outside[0] == "ip link add mcop2 type veth peer name eth0 netns 77"
    assert "ip route add 10.210.0.0/20 via 10.210.255.2 dev mcop2" in outside
    assert "ip route add 10.210.128.0/20 via 10.210.255.2 dev mcop2" in outside


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


def test_the_simulated_node() -> None:
    node = manifest(plan("control-plane"))
    assert node["metadata"]["name"] == "one-node"
    assert node["status"]["capacity"] == node["status"]["allocatable"]
