"""Processes, control groups, reports and the command line."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cluster import cli, record
from cluster.console.progress import Progress, line
from cluster.errors import ClusterError
from cluster.locks import at_once
from cluster.node import cgroups
from cluster.node.isolation import check
from cluster.paths import State, cache_dir, state_root
from cluster.plan import PORT_NAMES, Mode
from cluster.run import processes
from cluster.run.supervision import log_tail
from cluster.run.supervisor import Supervisor
from cluster.shell import run, succeeds, tail

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


def test_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert processes.alive(child.pid)
    assert child.pid in processes.children(os.getpid())
    assert processes.host_pid(os.getpid(), child.pid) == child.pid
    processes.kill([child.pid], signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.alive(child.pid), "a zombie is not alive"
    child.communicate()
    assert not processes.alive(child.pid)


def hierarchy(folder: Path, **content: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in {"cgroup_procs": "", **content}.items():
        (folder / name.replace("_", ".", 1)).write_text(text)
    return folder


def test_control_groups_v1(tmp_path: Path) -> None:
    cpuset = hierarchy(tmp_path / "cpuset", cpuset_cpus="0-1", cpuset_mems="0")
    memory = hierarchy(tmp_path / "memory")
    (tmp_path / "alias").symlink_to(memory)
    assert cgroups.hierarchies(tmp_path) == [cpuset, memory]
    (cpuset / "x").mkdir()
    (cpuset / "x" / "cpuset.cpus").touch()
    cgroups.create("x", tmp_path)
    assert (cpuset / "x" / "cpuset.cpus").read_text() == "0-1"
    assert (memory / "x").is_dir()


def test_control_groups_v2(tmp_path: Path) -> None:
    hierarchy(tmp_path / "v2", cgroup_controllers="cpu memory")
    root = tmp_path / "v2"
    assert cgroups.hierarchies(root) == [root]
    (root / "x" / "child").mkdir(parents=True)
    (root / "x" / "cgroup.controllers").write_text("cpu")
    cgroups.create("x", root)
    assert (root / "cgroup.subtree_control").read_text() == "+cpu +memory"
    (root / "x" / "child" / "cgroup.procs").write_text("12\n7\n")
    assert cgroups.processes("x", root) == [7, 12]
    assert list(cgroups.groups("x", root)) == [root / "x" / "child", root / "x"]


def test_hidden_directories() -> None:
    check([Path("/root/state"), Path("/srv/cache")])
    with pytest.raises(ClusterError, match="hidden"):
        check([Path("/var/lib/someone/state")])


def test_supervisor_starts_stops_and_reports(tmp_path: Path) -> None:
    state = State(tmp_path)
    probe = {"kind": "tcp", "target": "127.0.0.1:1"}
    sleeper = {"argv": [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]}
    broken = {"argv": [sys.executable, "-c", "raise SystemExit('broken')"]}
    parts = {"sleeper": {**sleeper, "env": {}, "probe": probe}, "broken": {**broken, "env": {}, "probe": probe}}
    state.components_file.write_text(json.dumps(parts))
    supervisor = Supervisor(state)
    assert supervisor.handle({"do": "start", "component": "sleeper"}) == {"started": True}
    assert supervisor.handle({"do": "start", "component": "sleeper"}) == {"started": False}
    assert supervisor.handle({"do": "start", "component": "broken"}) == {"started": True}
    supervisor.running["broken"].process.wait()
    supervisor.reap()
    found = {each["name"]: each for each in supervisor.handle({"do": "status"})["components"]}
    assert found["sleeper"]["pid"]
    assert (found["broken"]["pid"], found["broken"]["exit_code"]) == (None, 1)
    assert log_tail(state.log("broken")).strip() == "broken"
    assert supervisor.handle({"do": "stop", "component": "sleeper"}) == {"stopped": True}
    assert supervisor.handle({"do": "stop", "component": "sleeper"}) == {"stopped": False}
    assert "error" in supervisor.handle({"do": "start", "component": "nonsense"})
    assert "error" in supervisor.handle({"do": "nonsense"})


def test_progress_lines() -> None:
    out = io.StringIO()
    progress = Progress(12, out)
    with progress.step("build something") as notes:
        notes.append("cached")
    with pytest.raises(ClusterError), progress.step("start something"):
        raise ClusterError("no")
    first, second = out.getvalue().splitlines()
    assert first.startswith(line(1, 12, "build something", "cached"))
    assert second.startswith(line(2, 12, "start something", "failed after"))


def test_shell() -> None:
    assert run([sys.executable, "-c", "print(input())"], stdin="hello") == "hello\n"
    assert not succeeds([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(ClusterError, match="is missing"):
        run(["a-program-that-does-not-exist"])
    with pytest.raises(ClusterError, match="did not finish"):
        run(["sleep", "9"], timeout=0.01)
    assert tail("1\n2\n3", 2) == "    2\n    3"


def test_directories() -> None:
    assert cache_dir({"XDG_CACHE_HOME": "/c"}) == Path("/c/memcached-operator")
    assert state_root({"XDG_STATE_HOME": "/s"}) == Path("/s/memcached-operator")
    assert cache_dir({}) == Path.home() / ".cache" / "memcached-operator"


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


def test_plans_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not tmp_path: below it, with pytest-xdist, the path is too long for a socket.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        _store_plans()


def _store_plans() -> None:
    first = record.make_plan("one", "control-plane")
    assert record.read(record.state_of("one")) is None
    record.write(record.state_of("one"), first)
    assert record.read(record.state_of("one")) == first
    second = record.make_plan("two", "control-plane", "v1.30.0")
    assert (first.version, second.version) == ("v1.35.4", "v1.30.0")
    assert (first.slot, second.slot) == (0, 1)
    assert set(second.ports) == set(PORT_NAMES)
    assert len(set(second.ports.values())) == len(PORT_NAMES)


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


@pytest.mark.parametrize("words", [["status"], ["logs", "etcd"]])
def test_no_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert cli.main(words) == 1
    assert capsys.readouterr().err.startswith("error: ")
