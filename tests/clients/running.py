"""Running client programs that know the cluster's DNS, or names of this machine's servers."""

import subprocess
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.public.programs import SYSTEM_PATH
from support import kube

RESOLVER: Final = "/etc/resolv.conf"
HOSTS: Final = "/etc/hosts"
WITH_FILE: Final = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
"""A shell command for a mount namespace of its own: only the program sees the other file."""
TIMEOUT: Final = 240.0
"""Seconds until a client without a result is killed: it hangs."""


@dataclass(frozen=True)
class Result:
    """What a client printed for one command."""

    succeeded: int
    """Stored keys, or hits."""
    errors: int
    """Requests that raised an exception; the other ones that did not succeed are misses."""
    slowest: float
    """Seconds of the slowest request."""


class Client:
    """A running client program."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self._name = name
        self._process = process

    def store(self, count: int) -> Result:
        """Store keys 0 to count - 1."""
        return self._request(f"set {count}")

    def read(self, count: int) -> Result:
        """Read keys 0 to count - 1."""
        return self._request(f"get {count}")

    def many(self, command: str, count: int) -> Result:
        """Store (`set`), read (`get`) or delete keys 0 to count - 1 with one call. Its time is `slowest`."""
        return self._request(f"{command}-many {count}")

    def _request(self, line: str) -> Result:
        assert self._process.stdin
        assert self._process.stdout
        timer = threading.Timer(TIMEOUT, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            words = self._process.stdout.readline().split()
        finally:
            timer.cancel()
        assert len(words) == 6, f"{self._name} printed {words} for {line!r}: it ended, or hung for {TIMEOUT:.0f} s"
        return Result(int(words[1]), int(words[3]), float(words[5]))


@contextmanager
def running(
    name: str, command: Iterable[str], variables: Mapping[str, str], file: Path, over: str = RESOLVER
) -> Generator[Client]:
    """Run a client program whose environment has only `variables`, and which sees `file` at the path `over`."""
    words = ["unshare", "--mount", "sh", "-euc", WITH_FILE, "sh", str(file), over, *command]
    environment = {"PATH": SYSTEM_PATH, **variables}
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Client(name, process)
        finally:
            process.kill()


def connection(namespace: str, name: str = "cache") -> dict[str, str]:
    """The variables that a container gets from the connection ConfigMap of a Memcached."""
    data: dict[str, str] = kube.must_get("configmaps", namespace, f"{name}-connection")["data"]
    return {key: value for key, value in data.items() if key.isupper()}
