"""Further cases of drift: objects of others that affect the children, or that no switched-off option may delete."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from faults.campaigns.drift import CHILDREN, Child, adopt, create_owner, key, wait_for_reason
from faults.case import Case, References
from faults.esr import VICTIM, Reference, check_operator, check_quiet, check_stable
from faults.sandbox import LONG_SYNC_PERIOD, READY_TIMEOUT, Sandbox, wait_until
from faults.workloads import OTHER_IMAGE, Workload, cache
from memcached_api import conditions as c
from memcached_operator.kube.client import MERGE_PATCH
from memcached_operator.kube.labels import INSTANCE
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    Key,
    Object,
    nested_list,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.world.other_budgets import LIST_PERIOD

RECOVERY = 30.0
"""Seconds until the operator has reacted."""
NOTICED = LIST_PERIOD + RECOVERY
"""Seconds until it has reacted to a change of a budget of others."""
THEIRS = "theirs"
SPEC = cache(size=2, podDisruptionBudget={})
OPTIONS = {POD_DISRUPTION_BUDGETS: "podDisruptionBudget", NETWORK_POLICIES: "networkPolicy"}
"""The children that an option switches off, and its field."""
SELECTED: Object = {"matchLabels": {INSTANCE: VICTIM}}
NOT_SELECTED: Object = {"matchExpressions": [{"key": INSTANCE, "operator": "NotIn", "values": [VICTIM]}]}
REMEDY = f"spec.scaleTargetRef to apiVersion {MEMCACHEDS.api_version}, kind Memcached, name {VICTIM}"


async def budget_first(sandbox: Sandbox, references: References) -> None:
    """A budget of others selects the pods of a new object: ours is not created until the other one is deleted."""
    expected = await _expected(references)
    original = await _create_budget(sandbox, SELECTED)
    await _start_with_object(sandbox)
    await _wait_for_notice(sandbox)
    await check_quiet(sandbox)
    created = sandbox.proxy.requests.counts("create", VICTIM)[POD_DISRUPTION_BUDGETS.plural]
    sandbox.check(not created, "a second budget for the same pods was created")
    await _check_unchanged(sandbox, original)
    await sandbox.delete(POD_DISRUPTION_BUDGETS, THEIRS)
    await check_stable(sandbox, MEMCACHEDS, expected, NOTICED, loose=True)


async def budget_later(sandbox: Sandbox, references: References) -> None:
    """A budget of others is created soon after ours, which is deleted until the other one selects other pods."""
    await _start_with_object(sandbox)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)
    await _replaced(sandbox, references)


async def budget_much_later(sandbox: Sandbox, references: References) -> None:
    """The same at any time: the next sync notices the budget."""
    await _start_with_object(sandbox)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)
    await asyncio.sleep(2 * LIST_PERIOD)
    await _replaced(sandbox, references)


async def _replaced(sandbox: Sandbox, references: References) -> None:
    """A budget of others selects the pods instead of ours, and then other pods."""
    expected = await _expected(references)
    original = await _create_budget(sandbox, SELECTED)
    await sandbox.wait_deleted(POD_DISRUPTION_BUDGETS, VICTIM, NOTICED)
    await _wait_for_notice(sandbox)
    await check_quiet(sandbox)
    await _check_unchanged(sandbox, original)
    theirs = Key(POD_DISRUPTION_BUDGETS, sandbox.namespace, THEIRS)
    await sandbox.merge(theirs, {"spec": {"selector": {"matchLabels": {INSTANCE: "another"}}}})
    budgets = POD_DISRUPTION_BUDGETS.plural
    twice = Reference(expected.state, {**expected.created, budgets: 2}, {budgets: 1})
    await check_stable(sandbox, MEMCACHEDS, twice, NOTICED, loose=True)


async def budget_of_other_pods(sandbox: Sandbox, references: References) -> None:
    """A budget of others selects other pods: ours is created and stays."""
    expected = await _expected(references)
    original = await _create_budget(sandbox, NOT_SELECTED)
    await _start_with_object(sandbox)
    await check_stable(sandbox, MEMCACHEDS, expected, RECOVERY)
    await _check_unchanged(sandbox, original)


async def autoscaler(sandbox: Sandbox, _: References) -> None:
    """An autoscaler of the Deployment is a conflict, with the remedy, after its second change. It stops no rollout."""
    await _start_with_object(sandbox)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)
    await _fight(sandbox)
    await sandbox.change(MEMCACHEDS, VICTIM, {}, {"image": OTHER_IMAGE})
    await _wait_rolled_out(sandbox)
    await _fight(sandbox)
    await _wait_rolled_out(sandbox)
    await check_quiet(sandbox)
    check_operator(sandbox)


async def _fight(sandbox: Sandbox) -> None:
    """The autoscaler scales the Deployment twice, which is then a conflict."""
    for _ in range(2):
        await _scale(sandbox, 3)
    await wait_for_reason(sandbox, MEMCACHEDS, c.CONFLICT)
    message = await _message(sandbox)
    sandbox.check("A HorizontalPodAutoscaler scales it" in message and REMEDY in message, f"want the remedy: {message}")


async def _scale(sandbox: Sandbox, replicas: int) -> None:
    """Scale the Deployment as the autoscaler's controller does, and wait until the operator has reverted it."""
    deployment, patch = Key(DEPLOYMENTS, sandbox.namespace, VICTIM), {"spec": {"replicas": replicas}}
    path, manager = DEPLOYMENTS.path(sandbox.namespace, VICTIM), {"fieldManager": "kube-controller-manager"}
    await sandbox.client.request("PATCH", path, patch, MERGE_PATCH, manager)

    async def poll() -> bool:
        live = await sandbox.client.get(deployment) or {}
        return live["spec"]["replicas"] == SPEC["size"]

    await wait_until(poll, RECOVERY, "the size of the spec is restored")


async def switched_off(sandbox: Sandbox, references: References, child: Child) -> None:
    """The option of a child that another owner has adopted is switched off: the child is not deleted."""
    _, found = await create_owner(sandbox, references, child)
    await adopt(sandbox, child, found)
    await wait_for_reason(sandbox, child.owner, c.CONFLICT)
    await sandbox.change(child.owner, VICTIM, {}, {OPTIONS[child.resource]: None})
    await sandbox.wait_ready(child.owner, VICTIM)
    await check_quiet(sandbox)
    live = await sandbox.get(child.resource, child.own_name)
    sandbox.check(live and live["metadata"]["uid"] == found["metadata"]["uid"], "another owner's child was deleted")
    sandbox.check(live and live["spec"] == found["spec"], "another owner's child was changed")
    sandbox.check(await sandbox.client.get(key(sandbox, _other(child))), "another child was deleted")
    check_operator(sandbox)


def _other(child: Child) -> Child:
    """Another child of the same object that an option switches off."""
    return next(each for each in CHILDREN if each.resource in OPTIONS and each != child)


async def _expected(references: References) -> Reference:
    return await references.of(Workload("foreign-budget", MEMCACHEDS, None, SPEC, ()))


async def _start_with_object(sandbox: Sandbox) -> None:
    await sandbox.start()
    await sandbox.create(MEMCACHEDS, VICTIM, SPEC)


async def _create_budget(sandbox: Sandbox, selector: Object) -> Object:
    body = {"metadata": {"name": THEIRS}, "spec": {"minAvailable": 1, "selector": selector}}
    return await sandbox.client.request("POST", POD_DISRUPTION_BUDGETS.path(sandbox.namespace), body)


async def _check_unchanged(sandbox: Sandbox, original: Object) -> None:
    live = await sandbox.get(POD_DISRUPTION_BUDGETS, THEIRS) or {}
    same = live and all(live["metadata"][name] == original["metadata"][name] for name in ("uid", "generation"))
    sandbox.check(same, "the budget of others was changed or deleted")


async def _wait_for_notice(sandbox: Sandbox) -> None:
    """Wait until a ready object reports the budget of others."""
    await _wait_for_message(sandbox, f"PodDisruptionBudget {THEIRS} selects the same pods")
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)


async def _wait_for_message(sandbox: Sandbox, text: str) -> None:
    """Wait until the message of Degraded contains a text."""

    async def poll() -> bool:
        return text in await _message(sandbox)

    await wait_until(poll, RECOVERY, f"Degraded reports: {text}")


async def _wait_rolled_out(sandbox: Sandbox) -> None:
    """Wait until Progressing reports the end of the rollout of the current spec, although Degraded is True."""

    async def poll() -> bool:
        obj = await sandbox.get(MEMCACHEDS, VICTIM) or {}
        found = {each["reason"]: each["observedGeneration"] for each in nested_list(obj, "status", "conditions")}
        return found.get(c.ROLLOUT_COMPLETE) == obj["metadata"]["generation"]

    await wait_until(poll, READY_TIMEOUT, "the rollout of the current spec is complete")


async def _message(sandbox: Sandbox) -> str:
    """The message of Degraded."""
    return (await sandbox.condition(MEMCACHEDS, VICTIM, c.DEGRADED))["message"]


SCENARIOS: dict[str, Callable[..., Awaitable[None]]] = {
    "foreign-budget/created-before": budget_first,
    "foreign-budget/created-later": budget_later,
    "foreign-budget/of-other-pods": budget_of_other_pods,
    "foreign-autoscaler/of-the-deployment": autoscaler,
}


def cases() -> list[Case]:
    """Each scenario, and one for each child that an option switches off. All but one must work without a sync."""
    found = {f"drift/{name}": run for name, run in SCENARIOS.items()}
    found |= {
        f"drift/{child.name}/switched-off-after-adoption": partial(switched_off, child=child)
        for child in CHILDREN
        if child.resource in OPTIONS
    }
    without_sync = [Case(name, run, sync_period=LONG_SYNC_PERIOD) for name, run in found.items()]
    return [*without_sync, Case("drift/foreign-budget/created-much-later", budget_much_later, limit=480.0)]
