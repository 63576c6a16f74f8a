"""The local cluster itself: it comes up, says what has died, starts that again, and leaves nothing behind."""

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

TOOLS = Path(__file__).parents[2] / "tools"
NAME = f"second-{os.getpid()}"
MEMCACHED = "docker.io/library/memcached:1.6"
COMMAND = [sys.executable, "-m", "cluster"]
KILLED = ("etcd", "containerd", "kubelet", "proxy")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="a node of one's own needs root on Linux"
)


def environment() -> dict[str, str]:
    """Our own cluster beside whichever one the other tests use."""
    kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return {**kept, "PYTHONPATH": str(TOOLS), "CLUSTER": "node", "CLUSTER_NAME": NAME}


def cluster(*words: str) -> subprocess.CompletedProcess[str]:
    """Run one command of the tool."""
    return subprocess.run([*COMMAND, *words], env=environment(), capture_output=True, text=True, check=False)


def done(*words: str) -> str:
    """The same, expected to succeed; returns its standard output."""
    result = cluster(*words)
    assert result.returncode == 0, result.stderr
    return result.stdout


def info() -> dict[str, Any]:
    """What the tool says about the running cluster."""
    return json.loads(done("info"))


def kubectl(known: dict[str, Any], *words: str) -> str:
    """Run kubectl against our own cluster."""
    command = [f"{known['bin_dir']}/kubectl", f"--kubeconfig={known['kubeconfig']}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def descendants(pid: int) -> set[int]:
    """A process and everything below it."""
    found = {pid}
    parents = {int(each.name): parent(each) for each in Path("/proc").iterdir() if each.name.isdigit()}
    while more := {child for child, above in parents.items() if above in found} - found:
        found |= more
    return found


def parent(process: Path) -> int:
    """The parent's number, or 0 if the process is gone."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def identities(pids: set[int]) -> set[tuple[int, str]]:
    """Numbers and starting times of processes: numbers alone, like those of namespaces, are given out again."""
    stats = {pid: text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split() for pid in pids}
    return {(pid, fields[19]) for pid, fields in stats.items() if fields}


def everyone() -> set[int]:
    """All processes of the host."""
    return {int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()}


def state_dir() -> Path:
    """Where the tool keeps our cluster's files."""
    root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return root / "memcached-operator" / NAME


def remains(known: dict[str, Any]) -> dict[str, list[str]]:
    """Everything of our cluster that this host still has, by kind; empty when it is clean."""
    block = known["node_address"].rsplit(".", 2)[0] + "."
    commands = {each: (Path("/proc") / str(each) / "cmdline") for each in everyone()}
    found = {
        "processes": [str(pid) for pid, file in commands.items() if f"{NAME}/" in text(file) or NAME in words(file)],
        "mounts": [line for line in text(Path("/proc/self/mountinfo")).splitlines() if NAME in line],
        "links": [line for line in output("ip", "-oneline", "link").splitlines() if f" {known['link']}@" in line],
        "routes": [line for line in output("ip", "route", "show", "table", "all").splitlines() if block in line],
        "control groups": [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{known['cgroup']}")],
        "iptables": [line for line in output("iptables-save").splitlines() if block in line],
        "files": [str(state_dir())] if state_dir().exists() else [],
    }
    return {kind: each for kind, each in found.items() if each}


def text(file: Path) -> str:
    """A file's text, or nothing when its process has ended."""
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def words(file: Path) -> list[str]:
    """A command line's words."""
    return text(file).split("\0")


def output(*command: str) -> str:
    """A command's standard output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def memcached_version(address: str) -> bytes:
    """Ask a memcached for its version."""
    with socket.create_connection((address, 11211), 5) as connection:
        connection.sendall(b"version\r\n")
        return connection.recv(64)


@pytest.fixture(scope="module", autouse=True)
def gone_afterwards() -> Iterator[None]:
    """Whatever fails, the next run starts clean."""
    yield
    done("down")


def test_whole_life() -> None:
    """Up, pods, killed components named and started again, the supervisor killed, nothing left."""
    assert done("up").splitlines()[-1] == f"export KUBECONFIG={state_dir()}/kubeconfig"
    known = info()
    pods_run(known)
    assert known["service_cidr"] not in output("iptables-save"), "rules belong into the cluster's own namespace"
    components_killed(known)
    used = identities(descendants(known["supervisor_pid"]))
    assert len(used) > len(KILLED), "the components and the pods"
    os.kill(known["supervisor_pid"], signal.SIGKILL)
    assert cluster("status").returncode == 1
    done("down")
    assert remains(known) == {}
    assert not used & identities(everyone()), "a process of the cluster or of a pod has stayed"
    assert "not there" in cluster("down").stderr


def pods_run(known: dict[str, Any]) -> None:
    """Pods run the memcached stand-in; the host reaches them through their service."""
    kubectl(known, "create", "deployment", "cache", f"--image={MEMCACHED}", "--replicas=2")
    kubectl(known, "expose", "deployment", "cache", "--port=11211")
    kubectl(known, "wait", "--for=condition=Available", "deployment/cache", "--timeout=30s")
    address = kubectl(known, "get", "service", "cache", "--output=jsonpath={.spec.clusterIP}")
    assert memcached_version(address).startswith(b"VERSION 1.6")


def components_killed(known: dict[str, Any]) -> None:
    """What is killed stays dead and is named; `up` starts it again, and the pods have not noticed."""
    before = kubectl(known, "get", "pods", "--output=jsonpath={.items[*].status.containerStatuses[*].containerID}")
    rows = [line.split() for line in done("status").splitlines()]
    pids = {row[0]: int(row[-2]) for row in rows if len(row) > 3 and row[-2].isdigit()}
    for name in KILLED:
        os.kill(pids[name], signal.SIGKILL)
    time.sleep(0.6)
    status = cluster("status")
    assert status.returncode == 1
    assert all(f"{name} has ended; its log ends with:" in status.stdout for name in KILLED)
    again = cluster("up")
    assert again.returncode == 0, again.stderr
    assert all(f"{name} was ended (-9); its log ends with:" in again.stderr for name in KILLED)
    after = kubectl(known, "get", "pods", "--output=jsonpath={.items[*].status.containerStatuses[*].containerID}")
    assert after == before


def test_stopped_component() -> None:
    """`stop` and `start` for fault tests: a stopped component is not an error, and `start` brings it back."""
    done("up")
    known = info()
    done("stop", "kube-apiserver")
    with pytest.raises(subprocess.CalledProcessError):
        kubectl(known, "get", "nodes", "--request-timeout=2s")
    status = cluster("status")
    assert status.returncode == 1
    assert "stopped" in status.stdout
    assert "has ended" not in status.stdout
    done("start", "apiserver")
    assert "Ready" in kubectl(known, "get", "nodes")
    done("down")
    assert remains(known) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted(number: signal.Signals) -> None:
    """`up` is interrupted or killed while components are starting: `down` removes what there is."""
    starting = subprocess.Popen([*COMMAND, "up"], env=environment(), stderr=subprocess.PIPE, text=True)
    assert starting.stderr
    for line in starting.stderr:
        if "start etcd" in line:
            break
    known = info()
    starting.send_signal(number)
    rest = starting.stderr.read()
    starting.stderr.close()
    assert starting.wait() == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert ("interrupted" in rest) == (number == signal.SIGINT)
    used = identities(descendants(known["supervisor_pid"]))
    done("down")
    assert remains(known) == {}
    assert not used & identities(everyone())
