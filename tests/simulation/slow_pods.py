"""Pods that start and stop as slowly as in a cluster: those of the simulation do so at once."""

import asyncio
from collections.abc import Generator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Final
from unittest import mock

from memcached_operator.kube.resource import PODS, Key, nested_map
from simulation.cluster import access, cluster, nodes

START, STOP = 3.0, 6.0
"""Seconds in which a pod becomes ready, and in which it stops."""
HELD_POLL: Final = 1.0
"""Seconds until a pod that must not become ready is checked again."""


class _Nodes:
    """Runs and removes pods after some time. `held`: the names of those that do not become ready."""

    def __init__(self, held: AbstractSet[str]) -> None:
        self._held = held
        self._seen: dict[tuple[str, bool], float] = {}

    def sync(self, client: access.Access, key: Key) -> float | None:
        """Run or remove a pod, or return the seconds until then."""
        pod = client.get(key)
        if pod is None:
            return nodes.sync(client, key)
        deleted = access.is_deleted(pod)
        if not deleted and (key.name in self._held or nested_map(pod, "status").get("phase") == "Running"):
            return None if key.name not in self._held else HELD_POLL
        now = asyncio.get_running_loop().time()
        due = self._seen.setdefault((pod["metadata"]["uid"], deleted), now) + (STOP if deleted else START)
        return nodes.sync(client, key) if now >= due else due - now


@contextmanager
def slow_pods(held: AbstractSet[str] = frozenset()) -> Generator[None]:
    """Pods start and stop slowly. `held`: the names of those that do not become ready, which may change."""
    with mock.patch.dict(cluster.CONTROLLERS, {PODS: _Nodes(held).sync}):
        yield
