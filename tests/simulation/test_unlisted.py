"""The status while lists fail without which no plan can be made, or from which changes are noticed."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any, Final
from unittest import mock
from unittest.mock import ANY

import pytest

from faults.sandbox import LONG_SYNC_PERIOD
from faults.state import is_ready
from memcached_api import conditions as c
from memcached_operator.engine.kind import Outcome
from memcached_operator.engine.manager import RELIST_PERIOD
from memcached_operator.engine.reporting.lists import kept_status
from memcached_operator.engine.writes.reverts import LIMIT
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.client import ApiClient, Page
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.world.knowledge import LASTING
from memcached_operator.world.snapshot import Snapshot
from simulation.test_proxies import SETTLED, World, both, run
from simulation.test_proxy_faults import CODES, cannot, failing_lists

REQUIRED: Final = (STATEFULSETS, DEPLOYMENTS, PODS)
"""Resources that plans of both kinds need, or of one of them."""


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("failing", REQUIRED, ids=lambda resource: resource.plural)
def test_status_says_that_children_cannot_be_listed(failing: Resource, code: int) -> None:
    """At the start: no child is changed, the last status is kept, and nothing is Ready."""
    concerned = [(MEMCACHEDS, "cache"), *([] if failing == STATEFULSETS else [(MEMCACHEDPROXIES, "front")])]

    async def scenario(world: World) -> None:
        await both(world)
        before = {each: world.get(*each)["status"] for each in concerned}
        await world.sandbox.operator.stop()
        world.changes.clear()
        with failing_lists(code, failing=failing):
            world.sandbox.operator.start()
            await world.change(MEMCACHEDS, "cache", size=4)
            await asyncio.sleep(2 * SETTLED)
            text = f"Nothing is changed: {cannot(failing, code)}"
            for each in concerned:
                status = world.get(*each)["status"]
                type_, reason = ("Progressing", "RollingOut") if code == 500 else ("Degraded", "ApplyFailed")
                assert world.condition(*each, type_) == (reason, text)
                assert {**status, "conditions": []} == {**before[each], "conditions": []}
                assert world.condition(*each, "Available") == ("MinimumReplicasAvailable", ANY)
                assert not is_ready(world.get(*each))
                assert "healthy" not in str(status)
            assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        await asyncio.sleep(2 * SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 4
        assert all(is_ready(world.get(*each)) for each in concerned)

    run(scenario)


def test_failure_that_was_known_before_stays_while_lists_fail() -> None:
    """It may have ended, but nothing says so."""
    kept = [
        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "0 of 3"},
        {"type": "Degraded", "status": "True", "reason": "PodsCrashing", "message": "Pod cache-0 crashes"},
    ]
    cr = {"metadata": {"name": "cache"}, "status": {"observedGeneration": 1, "conditions": kept}}
    outcome = Outcome((Problem(c.ROLLING_OUT, "Nothing is changed: the list failed", blocks=False),))
    status = kept_status(Snapshot(cr), outcome, datetime.now(UTC)).status
    found = {each["type"]: each for each in status["conditions"]}
    assert [found["Available"], found["Degraded"]] == kept
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "PodsCrashing")
    assert status["observedGeneration"] == 1


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("failing", [*REQUIRED, MEMCACHEDS], ids=lambda resource: resource.plural)
def test_status_says_that_changes_may_not_be_noticed(failing: Resource, code: int) -> None:
    """A right that is lost later, or an API server that fails for hours: what has been listed before is still known."""

    async def scenario(world: World) -> None:
        await both(world)
        with failing_lists(code, failing=failing):
            await asyncio.sleep(1.1 * LONG_SYNC_PERIOD + LASTING * RELIST_PERIOD)  # one resync, and its repetitions
            text = f"Changes of {failing.plural} may not be noticed: {cannot(failing, code)}"
            type_ = "Progressing" if code == 500 else "Degraded"
            assert world.condition(MEMCACHEDS, "cache", type_)[1] == text
            await world.change(MEMCACHEDS, "cache", size=4)
            await asyncio.sleep(2 * SETTLED)
            assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 4
        await asyncio.sleep(2 * LONG_SYNC_PERIOD)
        assert is_ready(world.get(MEMCACHEDS, "cache"))

    run(scenario)


def test_size_that_changes_all_the_time_does_not_list_pods_each_time() -> None:
    lists: list[Resource] = []
    real = ApiClient.list

    async def counted(self: ApiClient, resource: Resource, *words: Any, **options: Any) -> AsyncGenerator[Page]:
        lists.append(resource)
        async for page in real(self, resource, *words, **options):
            yield page

    async def scenario(world: World) -> None:
        await world.cache()
        await asyncio.sleep(SETTLED)
        with mock.patch.object(ApiClient, "list", counted):
            for _ in range(50):
                await world.sandbox.merge(world.key(STATEFULSETS, "cache"), {"spec": {"replicas": 4}})
                await asyncio.sleep(0.5)
        assert lists.count(PODS) <= LIMIT + 1

    run(scenario)
