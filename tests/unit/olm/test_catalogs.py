"""Catalogs for OLM, and the processes that serve them."""

from pathlib import Path
from typing import Any

import pytest

from cluster.components import Component, read_components, write, write_components
from cluster.paths import State
from cluster.plan import NODE_PORTS, Plan
from olm import catalogs, components, objects
from olm.components import FIRST_PORT, free_port, port_of

PLAN = Plan("one", "node", 0, dict(NODE_PORTS))


@pytest.mark.parametrize(
    ("used", "port"),
    [([], FIRST_PORT), ([FIRST_PORT], FIRST_PORT + 1), ([FIRST_PORT + 1], FIRST_PORT)],
)
def test_ports(used: list[int], port: int) -> None:
    assert free_port(used) == port


def test_processes(tmp_path: Path) -> None:
    state, programs = State(tmp_path), Path("/bin")
    registry = components.registry(PLAN, state, programs, "test", 25051)
    every = [components.olm(state, programs), components.catalog(state, programs), registry]
    assert len({each.name for each in every}) == len({each.probe["target"] for each in every}) == 3
    assert all(each.name.startswith("olm-") for each in every), "the report finds processes by this prefix"
    assert port_of(registry.probe["target"]) == 25051


def test_changed_catalog_gets_another_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, str]] = []

    def ask(_: State, do: str, name: str = "") -> dict[str, Any]:
        requests.append((do, name))
        return {}

    monkeypatch.setattr("cluster.run.supervision.ask", ask)
    state = State(tmp_path)
    write(state.components_file, "{}")
    write_components([Component("etcd", [], {"kind": "tcp", "target": "127.0.0.1:2379"})], state)
    assert catalogs.place(state, "test", "one") == (FIRST_PORT, True)
    write_components([components.registry(PLAN, state, Path("/bin"), "test", FIRST_PORT)], state)
    assert catalogs.place(state, "test", "one") == (FIRST_PORT, False)
    assert not requests
    assert catalogs.place(state, "test", "two") == (FIRST_PORT + 1, True)
    assert requests == [("stop", "olm-registry-test")]
    assert list(read_components(state)) == ["etcd"], "only the stopped component is removed"


def test_cluster_keeps_added_components(tmp_path: Path) -> None:
    state = State(tmp_path)
    write(state.components_file, "{}")
    added = components.olm(state, Path("/bin"))
    own = [Component("etcd", [], {"kind": "tcp", "target": "127.0.0.1:2379"})]
    write_components([added], state)
    write_components(own, state)
    assert set(read_components(state)) == {"etcd", "olm-operator"}


def test_catalogs_and_operators_have_separate_namespaces() -> None:
    foundation = objects.foundation()
    groups = [each for each in foundation if each["kind"] == "OperatorGroup"]
    assert [each["metadata"]["namespace"] for each in groups] == [objects.OPERATORS, components.NAMESPACE]
    assert groups[0]["spec"] == {}, "operators in this namespace watch all namespaces"
    source = objects.catalog_source("test", "olm", "10.0.0.1:25051")
    assert source["spec"]["address"] == "10.0.0.1:25051"
    assert objects.as_list([source])["items"] == [source]
