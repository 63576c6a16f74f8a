"""Catalogs for OLM, and the processes that serve them."""

from pathlib import Path
from typing import Any

import pytest

from cluster.paths import State
from cluster.plan import NODE_PORTS, Plan
from cluster.run import files
from cluster.run.components import Component
from olm import catalogs, components, running
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

    monkeypatch.setattr(running.supervision, "ask", ask)
    state = State(tmp_path)
    files.write(state.components_file, "{}")
    files.write_components([ETCD], state)
    assert catalogs.place(state, "test", "one") == (FIRST_PORT, True)
    files.write_components([components.registry(PLAN, state, Path("/bin"), "test", FIRST_PORT)], state)
    assert catalogs.place(state, "test", "one") == (FIRST_PORT, False)
    assert not requests
    assert catalogs.place(state, "test", "two") == (FIRST_PORT + 1, True)
    assert requests == [("stop", "olm-registry-test")]
    assert list(files.read_components(state)) == ["etcd"], "only the stopped component is removed"
