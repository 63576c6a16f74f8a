"""Processes of containers on this machine, where all nodes of the local cluster run."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.kube import Object, eventually
from support.programs import output


def container_id(pod: Object, container: str) -> str:
    """The id of a running container of a pod."""
    (found,) = (each for each in pod["status"]["containerStatuses"] if each["name"] == container)
    return found["containerID"].partition("://")[2]


def processes(container: str) -> Iterator[int]:
    """The processes of the container with this id, which their control groups name."""
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with suppress(OSError):  # it has exited
            if container in path.read_text():
                yield int(path.parent.name)


def send_signal(pod: Object, container: str, number: int) -> None:
    """Send a signal from the node to every process of a container."""
    found = list(processes(container_id(pod, container)))
    assert found, f"no process of {container} in {pod['metadata']['name']} on this machine"
    for each in found:
        os.kill(each, number)


@contextmanager
def frozen(pod: Object, container: str) -> Generator[None]:
    """Stop the processes of a container during the block: it accepts connections, and does not answer."""
    found = eventually(lambda: list(processes(container_id(pod, container))), description=f"{container} runs")
    for each in found:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in found:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)


@contextmanager
def unreachable(pod: Object, container: str, source: str = "") -> Generator[None]:
    """Drop all packets to a pod during the block, or those of a `source`, an IP address. `container`: one that runs."""
    process = next(processes(container_id(pod, container)))
    command = ["nsenter", f"--net=/proc/{process}/ns/net", "iptables", "--wait"]
    rule = ["INPUT", *(("--source", source) if source else ()), "--jump", "DROP"]
    output([*command, "--insert", *rule])
    try:
        yield
    finally:
        if Path(f"/proc/{process}").exists():  # the pod has not ended
            output([*command, "--delete", *rule])
