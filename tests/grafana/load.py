"""Clients of the caches: gets of popular and of rare keys, with stores of what is missing, and mistakes of clients."""

import math
import random
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from grafana.caches import MIB, Pod
from support.clients import Client, Server, in_threads

TICK = 0.1
"""Seconds between two batches of requests."""
WAVE = 240.0
"""Seconds of a wave of the rate, by a third up and down."""
SIZES = (90, 200, 480, 900, 1700, 3600)
"""Bytes of the items."""
TOO_LARGE = 600 * 1024
"""Bytes of an item above the limit of the caches."""
FILL = 1.3
"""The size of the first items, as a share of the memory."""
CROWD = 1.2
"""Connections of a crowd of clients, as a share of the limit."""


@contextmanager
def load(pods: Sequence[Pod]) -> Generator[None]:
    """Fill all pods, and send requests to them during the block."""
    for each in pods:
        _fill(each)
    with in_threads(*(partial(_run, each) for each in pods), partial(_crowds, pods)):
        yield


def _fill(pod: Pod) -> None:
    """Store as many items as memcached can keep, and some more: a cache that is not full evicts nothing."""
    size = pod.cache.factor * sum(SIZES) // len(SIZES)
    with Client(Server("127.0.0.1", pod.port)) as client:
        for key in range(int(FILL * MIB * 2**20 / size)):
            client.send(_set(str(pod.cache.keys - key), pod.cache.factor * SIZES[key % len(SIZES)]))
        assert client.request(b"version").startswith(b"VERSION ")


def _run(pod: Pod, stop: threading.Event) -> None:
    chance = random.Random(pod.name)  # noqa: S311 - the same load each time
    while not stop.is_set():
        try:
            with Client(Server("127.0.0.1", pod.port)) as client:
                while not stop.wait(TICK):
                    _requests(pod, client, chance)
        except OSError:  # it is restarted, or at its connection limit
            stop.wait(0.5)


def _requests(pod: Pod, client: Client, chance: random.Random) -> None:
    """One batch."""
    wave = 1 + math.sin(time.time() / WAVE * 2 * math.pi) / 3
    count = max(1, round(pod.cache.rate * TICK * wave * chance.uniform(0.8, 1.2)))
    keys = [int(chance.paretovariate(0.35)) % pod.cache.keys for _ in range(count)]
    client.send("".join(f"get {key}\r\n" for key in keys).encode())
    missing = [key for key in keys if not _is_hit(client)]
    client.send(b"".join(_set(str(key), pod.cache.factor * SIZES[key % len(SIZES)]) for key in missing))
    if chance.random() < 0.3:
        client.send(f"delete {keys[0]}\r\ntouch {keys[-1]} 0\r\nincr counter 1\r\n".encode())
        for _ in range(3):
            client.line()
    if chance.random() < 0.05:
        client.send(_set("large", TOO_LARGE, quiet=False))
        client.line()


def _set(key: str, size: int, *, quiet: bool = True) -> bytes:
    return f"set {key} 0 0 {size}{' noreply' if quiet else ''}\r\n{'x' * size}\r\n".encode()


def _is_hit(client: Client) -> bool:
    if client.line() == b"END\r\n":
        return False
    client.line()
    return client.line() == b"END\r\n"


def _crowds(pods: Sequence[Pod], stop: threading.Event) -> None:
    """Now and then, more connections than the limit allows."""
    crowded = [each for each in pods if each.cache.crowds]
    while not stop.wait(8):
        for pod in crowded:
            with ExitStack() as stack:
                for _ in range(int(pod.cache.limit * CROWD)):
                    stack.enter_context(Client(Server("127.0.0.1", pod.port)))
                stop.wait(3)
