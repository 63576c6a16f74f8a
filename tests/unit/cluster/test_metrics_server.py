"""metrics-server: its command line, its objects, and the order in which it is started and stopped."""

import io
from pathlib import Path

import pytest
import yaml

from cluster import cli, metrics_server
from cluster.console.progress import Progress
from cluster.errors import ClusterError
from cluster.paths import State
from cluster.plan import NODE_PORTS, Mode, Plan
from cluster.run import components
from cluster.run.components import Component, Programs

STATE = State(Path("/state/one"))
LISTENER = ("10.210.255.2", 4443)


def plan(mode: Mode = "node") -> Plan:
    return Plan("one", mode, 2, dict(NODE_PORTS))


def test_it_listens_only_on_the_address_of_the_node() -> None:
    found = components.metrics_server(plan(), STATE, Programs(Path("/programs")))
    address, port = LISTENER
    assert {f"--bind-address={address}", f"--secure-port={port}"} <= set(found.argv)
    assert found.probe["target"].startswith(f"https://{address}:{port}/")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `start` and `stop` do to a running cluster, in order."""
    done: list[str] = []

    def kubectl(_: State, *words: str, stdin: str = "") -> None:
        kinds = [each["kind"] for each in yaml.safe_load_all(stdin)]
        done.append(f"{words[0]} {kinds[-1] if kinds else words[1]}")

    def apply(state: State, *_: str, stdin: str) -> None:
        kubectl(state, "apply", stdin=stdin)

    def ensure_running(_: State, component: Component) -> bool:
        done.append(f"run {component.name}")
        return True

    def end(_: State, name: str) -> bool:
        done.append(f"end {name}")
        return True

    def build_programs(*_: object) -> Path:
        return Path("/programs")

    for double in (kubectl, apply, ensure_running, end, build_programs):
        monkeypatch.setattr(metrics_server, double.__name__, double)
    monkeypatch.setattr(cli, "running", lambda: (STATE, plan()))
    return done


def test_the_api_is_registered_only_while_it_responds(steps: list[str]) -> None:
    assert cli.main(["start", "metrics-server"]) == 0
    assert cli.main(["stop", "metrics-server"]) == 0
    assert steps == [
        "apply EndpointSlice",
        "run metrics-server",
        "apply APIService",
        "wait apiservice/v1beta1.metrics.k8s.io",
        "delete APIService",
        "delete EndpointSlice",
        "end metrics-server",
    ]


def test_it_needs_containers(steps: list[str]) -> None:
    with pytest.raises(ClusterError, match="no real node"):
        metrics_server.start(STATE, plan("control-plane"), Progress(1, io.StringIO()))
    assert steps == []
