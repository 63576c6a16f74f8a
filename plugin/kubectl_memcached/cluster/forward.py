"""Ports of a pod on loopback, by `kubectl port-forward`.

The connection ends in the network namespace of the pod at 127.0.0.1. So it reaches the loopback port without TLS that
the operator gives its agent, needs no certificate, and no NetworkPolicy applies.
"""

import queue
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import IO, Final, cast

from kubectl_memcached.cluster.kubectl import Kubectl, failure
from kubectl_memcached.errors import ExitCode, PluginError

START_TIMEOUT: Final = 30.0
"""Seconds until kubectl listens. It takes 0.2 s. A login can take longer."""
STOP_TIMEOUT: Final = 5.0
"""Seconds between SIGTERM and SIGKILL."""
_LINE: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)")


@contextmanager
def forwarded(kubectl: Kubectl, namespace: str, pod: str, ports: Sequence[int]) -> Generator[dict[int, int]]:
    """The ports of 127.0.0.1 that reach the ports of a pod, during the block. Raises PluginError."""
    words = ["port-forward", "--address=127.0.0.1", *kubectl.options(namespace), f"pod/{pod}"]
    command = [kubectl.program, *words, *[f":{port}" for port in ports]]
    with tempfile.TemporaryFile("w+", errors="replace") as errors, _started(command, errors) as process:
        try:
            local_ports = _local(cast("IO[str]", process.stdout), len(set(ports)))
            if local_ports is None:
                _stop(process)
                errors.seek(0)
                raise _error(errors.read(), pod)
            yield local_ports
        finally:
            _stop(process)


def _started(command: Sequence[str], errors: IO[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace"
    )


def _local(output: IO[str], number: int) -> dict[int, int] | None:
    """The local ports by remote port, as soon as all are open. None if kubectl exits first or takes too long."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_copy, args=(output, lines), daemon=True).start()
    deadline, local_ports = time.monotonic() + START_TIMEOUT, dict[int, int]()
    while len(local_ports) < number:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if not line:
            return None
        if match := _LINE.match(line):
            local_ports[int(match[2])] = int(match[1])
    return local_ports


def _copy(output: IO[str], lines: "queue.SimpleQueue[str]") -> None:
    """Copy lines, and an empty one at the end. It continues while ports are in use: a full pipe would block kubectl."""
    try:
        for line in output:
            lines.put(line)
    except ValueError:
        pass  # the output was closed at the end of the block
    lines.put("")


def _error(stderr: str, pod: str) -> PluginError:
    """The error for one pod, or that of a missing permission, which is the same for each pod."""
    reason = stderr or f"it did not listen within {START_TIMEOUT:g} s"
    error = failure(reason, "forward ports to pods")
    if error.code == ExitCode.FORBIDDEN:
        return error
    return PluginError(str(failure(reason, f"forward a port to pod {pod}")), ExitCode.POD)


def _stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
