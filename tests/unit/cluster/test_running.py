"""The local cluster: what it starts where, and what it must not touch. Each gate starts and removes one."""

import re
from pathlib import Path

import pytest

from cluster import cli, record
from cluster.errors import ClusterError
from cluster.locks import at_once
from cluster.node.isolation import check
from cluster.plan import Mode
from cluster.run import processes
from olm import cli as olm

STATE_DIR = Path("/state/one")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["python3", "-m", "cluster.run.supervisor", "/state/one", "node"], True),
        (["unshare", "--pid", "python3", "-m", "cluster.run.supervisor", "/state/one", "node"], True),
        (["python3", "-m", "cluster.run.supervisor", "/state/one-more", "node"], False),
        (["/cache/bin/etcd", "--data-dir=/state/one/etcd"], True),
        (["/cache/bin/etcd", "--data-dir=/state/one-more/etcd"], False),
        (["/cache/bin/kubectl", "--kubeconfig=/state/one/kubeconfig", "get", "pods"], False),
        (["tail", "-f", "/state/one/audit.log"], False),
        ([""], False),
    ],
)
def test_process_belongs_to_the_cluster(words: list[str], expected: bool) -> None:
    assert processes.belongs(words, STATE_DIR) is expected


def test_hidden_directories() -> None:
    check([Path("/root/state"), Path("/srv/cache")])
    with pytest.raises(ClusterError, match="hidden"):
        check([Path("/var/lib/someone/state")])


@pytest.mark.parametrize(
    ("requested", "uid", "mode"),
    [("", 0, "node"), ("", 1000, "control-plane"), ("control-plane", 0, "control-plane"), ("node", 0, "node")],
)
def test_mode(monkeypatch: pytest.MonkeyPatch, requested: str, uid: int, mode: str) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr(record, "can_isolate", lambda: True)
    assert record.choose_mode({"CLUSTER": requested}) == mode


def test_root_without_namespaces_has_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(record, "can_isolate", lambda: False)
    assert record.choose_mode({}) == "control-plane"
    with pytest.raises(ClusterError, match=r"^CLUSTER=node needs root on Linux"):
        record.choose_mode({"CLUSTER": "node"})


@pytest.mark.parametrize(("requested", "uid"), [("node", 1000), ("nonsense", 0)])
def test_invalid_mode(monkeypatch: pytest.MonkeyPatch, requested: str, uid: int) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    with pytest.raises(ClusterError, match="CLUSTER="):
        record.choose_mode({"CLUSTER": requested})


@pytest.mark.parametrize(
    ("requested", "mode", "version"),
    [
        ("", "node", "v1.35.4"),
        ("1.35.4", "node", "v1.35.4"),
        ("", "control-plane", "v1.35.4"),
        ("1.30.0", "control-plane", "v1.30.0"),
        ("v1.30.0", "control-plane", "v1.30.0"),
    ],
)
def test_version(requested: str, mode: Mode, version: str) -> None:
    assert record.choose_version(mode, {"KUBE_VERSION": requested} if requested else {}) == version


@pytest.mark.parametrize(
    ("requested", "mode", "remedy"),
    [
        ("1.29.0", "control-plane", "KUBE_VERSION='1.29.0' must be one of 1.37.2, 1.36.3, 1.35.4,"),
        ("1.30.0", "node", "KUBE_VERSION=1.30.0 has no nodes: set CLUSTER=control-plane"),
    ],
)
def test_invalid_version(requested: str, mode: Mode, remedy: str) -> None:
    with pytest.raises(ClusterError, match=re.escape(remedy)):
        record.choose_version(mode, {"KUBE_VERSION": requested})


def test_long_paths_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/" + "x" * 90)
    with pytest.raises(ClusterError, match="too long"):
        record.state_of("one")


def test_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with at_once("x"), pytest.raises(ClusterError, match="holds the lock"), at_once("x"):
        pass
    with at_once("x"):
        pass


def test_external_cluster_is_not_modified(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/me/.kube/config")
    assert cli.main(["up"]) == 0
    out, err = capsys.readouterr()
    assert out == "export KUBECONFIG=/home/me/.kube/config\n"
    assert "no cluster is started" in err
    assert cli.main(["down"]) == 0
    assert "it is not modified" in capsys.readouterr().err


def test_olm_does_not_modify_an_external_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    assert olm.main(["up"]) == 1
    assert "is not a local cluster of this project" in capsys.readouterr().err
