"""The local cluster: what it starts where, and what it must not touch. Each gate starts and removes one."""

from pathlib import Path

import pytest

from cluster import cli, record
from cluster.errors import ClusterError
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


def test_root_without_namespaces_has_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(record, "can_isolate", lambda: False)
    assert record.choose_mode({}) == "control-plane"
    with pytest.raises(ClusterError, match=r"^CLUSTER=node needs root on Linux"):
        record.choose_mode({"CLUSTER": "node"})


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
