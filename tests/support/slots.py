"""Clients of a Memcached with slots: a consistent-hashing ring, and a request loop for each slot."""

import bisect
import hashlib
import socket
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from support import kube
from support.memcached import send_commands, wait_until_ready
from support.waiting import BUSY, READY

POINTS = 160
"""Points of each server on the ring, as in libketama."""

PAUSE = 0.1
"""Seconds between two requests of a loop."""

TIMEOUT = BUSY * 1.0
"""Seconds until a request of a loop has failed."""


class Ring:
    """Distributes keys over servers by consistent hashing, as clients with ketama do: each has POINTS on a circle."""

    def __init__(self, servers: Iterable[str]) -> None:
        points = sorted((_hash(f"{server}-{number}"), server) for server in servers for number in range(POINTS))
        self._points = [point for point, _ in points]
        self._servers = [server for _, server in points]

    def server_of(self, key: str) -> str:
        """The server of a key."""
        return self._servers[bisect.bisect(self._points, _hash(key)) % len(self._servers)]

    def distribution(self, keys: Iterable[str]) -> dict[str, str]:
        """The server of each key."""
        return {key: self.server_of(key) for key in keys}


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "little")


def slot_addresses(namespace: str, size: int, name: str = "cache") -> list[str]:
    """The fixed address of each slot's Service, when all lead to pods: that is a little after the pods are ready."""
    found = [kube.must_get("services", namespace, f"{name}-{slot}")["spec"]["clusterIP"] for slot in range(size)]
    for address in found:
        kube.eventually(lambda address=address: _connects(address), description=f"{address} leads to a pod")
    return found


def _connects(address: str) -> bool:
    with suppress(OSError), socket.create_connection((address, 11211), timeout=TIMEOUT):
        return True
    return False


def store(address: str, key: str, port: int = 11211) -> None:
    """Store the key as its own value."""
    assert send_commands(address, port, f"set {key} 0 0 {len(key)}".encode(), key.encode()) == b"STORED\r\n"


def has(address: str, key: str, port: int = 11211) -> bool:
    """Whether a server has the key."""
    return send_commands(address, port, f"get {key}".encode()).startswith(b"VALUE ")


@dataclass
class Outages:
    """The times at which requests to a slot were answered and failed, in seconds since the start."""

    answered: list[float] = field(default_factory=list[float])
    failed: list[float] = field(default_factory=list[float])

    def period(self) -> tuple[float, float] | None:
        """The time from the first failed request to the next answer after the last one; None if none failed."""
        if not self.failed:
            return None
        return self.failed[0], min(at for at in self.answered if at > self.failed[-1])


@contextmanager
def requested(addresses: Iterable[str]) -> Generator[list[Outages]]:
    """Send requests to each address until the block ends, with a new connection each."""
    stop, started = threading.Event(), time.monotonic()
    loops = [(address, Outages()) for address in addresses]
    threads = [threading.Thread(target=_request, args=(*loop, stop, started)) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield [found for _, found in loops]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _request(address: str, found: Outages, stop: threading.Event, started: float) -> None:
    while not stop.is_set():
        at = time.monotonic() - started
        try:
            ok = send_commands(address, 11211, b"version", timeout=TIMEOUT).startswith(b"VERSION ")
        except OSError:
            ok = False
        if ok:
            found.answered.append(time.monotonic() - started)
        else:
            found.failed.append(at)
        stop.wait(PAUSE)


def replace_pod(namespace: str, pod: str, name: str) -> None:
    """Delete a pod and wait until its Memcached `name` has as many ready pods again."""
    uid = kube.must_get("pods", namespace, pod)["metadata"]["uid"]
    kube.kubectl("delete", "pod", pod, "-n", namespace, "--wait=false")
    kube.eventually(
        lambda: uid not in [each["metadata"]["uid"] for each in kube.items("pods", namespace)], READY, "it is deleted"
    )
    wait_until_ready(namespace, name)
