"""Catalogs for OLM, and the processes that serve them."""

from pathlib import Path
from typing import Any

import pytest

from cluster.paths import State
from cluster.plan import NODE_PORTS, Plan
from cluster.public.components import Component, read_components, write, write_components
from olm import catalogs, components
from olm.components import FIRST_PORT, free_port

PLAN = Plan("one", "node", 0, dict(NODE_PORTS))
ETCD = Component("etcd", [], {"kind": "tcp", "target": "127.0.0.1:2379"})


@pytest.mark.parametrize(
    ("used", "port"),
    [([], FIRST_PORT), ([FIRST_PORT], FIRST_PORT + 1), ([FIRST_PORT + 1], FIRST_PORT)],
)
def test_ports(used: list[int], port: int) -> None:
    assert free_port(used) == port


def test_changed_catalog_gets_another_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, str]] = []

    def ask(_: State, do: str, name: str = "") -> dict[str, Any]:
        requests.append((do, name))
        return {}

    monkeypatch.setattr("cluster.run.supervision.ask", ask)
    state = State(tmp_path)
    write(state.components_file, "{}")
    write_components([ETCD], state)
    assert catalogs.place(state, "test", "one") == (FIRST_PORT, True)
    write_components([components.registry(PLAN, state, Path("/bin"), "test", FIRST_PORT)], state)
    assert catalogs.place(state, "test", "one") == (FIRST_PORT, False)
    assert not requests
    assert catalogs.place(state, "test", "two") == (FIRST_PORT + 1, True)
    assert requests == [("stop", "olm-registry-test")]
    assert list(read_components(state)) == ["etcd"], "only the stopped component is removed"
