"""Concurrent writes of a Lease on a real API server. The rest is in tests/unit/engine/test_lease.py."""

import asyncio

from integration.control_plane import ControlPlane
from memcached_operator.engine.runtime.leader_election import LeaderElector
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import LEASES, Key


def test_only_one_of_several_candidates_acquires(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: ApiClient) -> None:
        candidates = [LeaderElector(client, namespace, "operator", name) for name in "abcde"]
        for _ in range(2):  # first all try to create the Lease, then to update it
            acquired = await asyncio.gather(*(each.try_acquire_or_renew(30) for each in candidates))
            assert acquired.count(True) == 1
            await candidates[acquired.index(True)].release()

    plane.call(scenario)
    spec = plane.must_get(Key(LEASES, namespace, "operator"))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 1)
