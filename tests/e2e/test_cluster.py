"""The local cluster itself: it starts, reports and restarts components that have died, and is removed completely."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import programs

TOOLS = Path(__file__).parents[2] / "tools"
NAME = f"second-{os.getpid()}"
MEMCACHED = "docker.io/library/memcached:1.6"
COMMAND = [sys.executable, "-m", "cluster"]
KILLED = ("etcd", "containerd", "kubelet", "proxy")

pytestmark = [
    pytest.mark.nightly,  # each gate starts a cluster, uses it and removes it
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0, reason="a cluster with a node needs root on Linux"
    ),
]


def environment() -> dict[str, str]:
    """The environment for a separate cluster, beside the one that other tests use."""
    kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return {**kept, "PYTHONPATH": str(TOOLS), "CLUSTER": "node", "CLUSTER_NAME": NAME}


def cluster(*words: str) -> subprocess.CompletedProcess[str]:
    """Run one command of the cluster tool."""
    return programs.run([*COMMAND, *words], env=environment())


def succeed(*words: str) -> str:
    """Run one command that must succeed; return its standard output."""
    result = cluster(*words)
    assert result.returncode == 0, result.stderr
    return result.stdout


def info() -> dict[str, Any]:
    """The tool's information about the running cluster."""
    return json.loads(succeed("info"))


def kubectl(known: dict[str, Any], *words: str) -> str:
    """Run kubectl against the separate cluster."""
    command = [f"{known['bin_dir']}/kubectl", f"--kubeconfig={known['kubeconfig']}", *words]
    return programs.output(command)


def descendants(pid: int) -> set[int]:
    """A process and all its descendants."""
    found = {pid}
    parents = {int(each.name): parent(each) for each in Path("/proc").iterdir() if each.name.isdigit()}
    while more := {child for child, above in parents.items() if above in found} - found:
        found |= more
    return found


def parent(process: Path) -> int:
    """The PID of a process's parent, or 0 if the process has exited."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def identities(pids: set[int]) -> set[tuple[int, str]]:
    """PIDs with start times: PIDs alone are reused. Without those that have ended and wait for their parent."""
    stats = {pid: text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split() for pid in pids}
    return {(pid, fields[19]) for pid, fields in stats.items() if fields and fields[0] not in "ZX"}


def all_pids() -> set[int]:
    """The PIDs of all processes of the host."""
    return {int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()}


def state_dir() -> Path:
    """The directory of the separate cluster's files."""
    root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return root / "memcached-operator" / NAME


def remains(known: dict[str, Any]) -> dict[str, list[str]]:
    """What remains of the separate cluster on this host, by kind; empty if everything is removed."""
    block = known["node_address"].rsplit(".", 2)[0] + "."
    commands = {each: (Path("/proc") / str(each) / "cmdline") for each in all_pids()}
    found = {
        "processes": [str(pid) for pid, file in commands.items() if f"{NAME}/" in text(file) or NAME in words(file)],
        "mounts": [line for line in text(Path("/proc/self/mountinfo")).splitlines() if NAME in line],
        "links": [line for line in output("ip", "-oneline", "link").splitlines() if f" {known['link']}@" in line],
        "routes": [line for line in output("ip", "route", "show", "table", "all").splitlines() if block in line],
        "control groups": [path for path in directories("/sys/fs/cgroup") if path.endswith(f"/{known['cgroup']}")],
        "iptables": [line for line in output("iptables-save").splitlines() if block in line],
        "files": [str(state_dir())] if state_dir().exists() else [],
    }
    return {kind: each for kind, each in found.items() if each}


def directories(root: str) -> Iterator[str]:
    """All directories below a directory. Those that others remove meanwhile are left out."""
    return (path for path, _, _ in os.walk(root))


def text(file: Path) -> str:
    """A file's text; empty if the process has exited."""
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def words(file: Path) -> list[str]:
    """The arguments of a command line file."""
    return text(file).split("\0")


def output(*command: str) -> str:
    """Run a command; return its standard output."""
    return programs.output(command)


def memcached_version(address: str) -> bytes:
    """Query the version of a memcached."""
    with socket.create_connection((address, 11211), 5) as connection:
        connection.sendall(b"version\r\n")
        return connection.recv(64)


@pytest.fixture(scope="module", autouse=True)
def removed_afterwards() -> Iterator[None]:
    """Remove the cluster after the tests, also after a failure."""
    yield
    succeed("down")


def test_lifecycle() -> None:
    """Start, run pods, stop and restart components, kill the supervisor, remove everything."""
    assert succeed("up").splitlines()[-1] == f"export KUBECONFIG={state_dir()}/kubeconfig"
    known = info()
    run_pods(known)
    assert known["service_cidr"] not in output("iptables-save"), (
        "the cluster's rules must be in its own network namespace"
    )
    stop_and_start(known)
    kill_components(known)
    used = identities(descendants(known["supervisor_pid"]))
    assert len(used) > len(KILLED), "expected the components and the pods"
    os.kill(known["supervisor_pid"], signal.SIGKILL)
    assert cluster("status").returncode == 1
    succeed("down")
    assert remains(known) == {}
    assert not used & identities(all_pids()), "a process of the cluster or of a pod still runs"
    assert "is not running" in cluster("down").stderr


def run_pods(known: dict[str, Any]) -> None:
    """Run pods with the memcached stand-in and reach them from the host through their Service."""
    kubectl(known, "create", "deployment", "cache", f"--image={MEMCACHED}", "--replicas=2")
    kubectl(known, "expose", "deployment", "cache", "--port=11211")
    kubectl(known, "wait", "--for=condition=Available", "deployment/cache", "--timeout=30s")
    address = kubectl(known, "get", "service", "cache", "--output=jsonpath={.spec.clusterIP}")
    assert memcached_version(address).startswith(b"VERSION 1.6")


def kill_components(known: dict[str, Any]) -> None:
    """Kill components: `status` reports them, `up` restarts them, and the pods' containers keep running."""
    before = kubectl(known, "get", "pods", "--output=jsonpath={.items[*].status.containerStatuses[*].containerID}")
    rows = [line.split() for line in succeed("status").splitlines()]
    pids = {row[0]: int(row[-2]) for row in rows if len(row) > 3 and row[-2].isdigit()}
    for name in KILLED:
        os.kill(pids[name], signal.SIGKILL)
    deadline = time.monotonic() + 30
    while (report := cluster("status").stdout).count("has ended; its log ends with:") < len(KILLED):
        assert time.monotonic() < deadline, report
    assert all(f"{name} has ended; its log ends with:" in report for name in KILLED)
    again = cluster("up")
    assert again.returncode == 0, again.stderr
    assert all(f"{name} was ended (-9); its log ends with:" in again.stderr for name in KILLED)
    after = kubectl(known, "get", "pods", "--output=jsonpath={.items[*].status.containerStatuses[*].containerID}")
    assert after == before


def stop_and_start(known: dict[str, Any]) -> None:
    """Stop a component: `status` does not report it as an error, and `start` starts it again."""
    succeed("stop", "kube-apiserver")
    with pytest.raises(subprocess.CalledProcessError):
        kubectl(known, "get", "nodes", "--request-timeout=2s")
    status = cluster("status")
    assert (status.returncode, "stopped" in status.stdout, "has ended" in status.stdout) == (1, True, False)
    succeed("start", "apiserver")
    assert "Ready" in kubectl(known, "get", "nodes")


def test_interrupted() -> None:
    """`down` removes everything if `up` is interrupted while components are starting."""
    starting = subprocess.Popen([*COMMAND, "up"], env=environment(), stderr=subprocess.PIPE, text=True)
    assert starting.stderr
    assert any("start etcd" in line for line in starting.stderr)
    known = info()
    starting.send_signal(signal.SIGINT)
    rest = starting.stderr.read()
    starting.stderr.close()
    assert starting.wait() == 130
    assert "interrupted" in rest
    used = identities(descendants(known["supervisor_pid"]))
    succeed("down")
    assert remains(known) == {}
    assert not used & identities(all_pids())
