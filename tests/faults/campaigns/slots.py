"""Faults of a Memcached with slots: a pause of its rollout, its servers, and their Services."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from faults.campaigns.drift import FOREIGN, LABELS, RECOVERY, wait_for_reason
from faults.case import Case, References, prepare
from faults.esr import VICTIM, check_operator, check_quiet, check_stable
from faults.faulty import Fault, Kill, LoseReply, Reject
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, READY_TIMEOUT, Sandbox, wait_until, wait_until_injected
from faults.workloads import IMAGE, OTHER_IMAGE, SLOTS, Workload, cache, new_object
from memcached_api import conditions as c
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.resource import Key, Object, Resource, nested_list, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from support.lists import listed

PORT, OTHER_PORT = 11211, 11212
RUNNING: Object = {"rollout": {"paused": False}}
PAUSED: Object = {"rollout": {"paused": True}}
CHANGED: Object = {"image": OTHER_IMAGE, "containerPort": OTHER_PORT}
BEFORE = cache(size=2, **SLOTS, **RUNNING)
AFTER = {**BEFORE, **CHANGED}
WORKLOAD = Workload("stable-paused", MEMCACHEDS, BEFORE, AFTER, ())
"""The change, without a pause: what the state must be after the pause."""
ELSEWHERE = "example.com/elsewhere:1"
REJECTED, MAX_DELAY, MAX_ATTEMPTS = 60.0, 30.0, 12
"""Seconds for which creations are rejected, the longest delay between two, and how many there are at most: after 0.5 s,
1 s, 2 s and so on, with a few that other events cause."""
NOWHERE: Object = {"podTemplate": {"spec": {"nodeSelector": {"example.com/node": "none"}}}}
"""No node has this label: the pods stay pending."""

Disturbance = Callable[[Sandbox], Awaitable[None]]
"""What another client does during the pause."""


async def run_paused(
    sandbox: Sandbox,
    references: References,
    fault: Fault | None = None,
    disturb: Disturbance | None = None,
    write: str = "apply statefulsets",
) -> None:
    """Pause, change image and port, and continue. The pods, and the published addresses, stay as they are meanwhile.

    `fault`: of the write at the start of the pause. `disturb`: what happens during it.
    """
    expected = await references.of(WORKLOAD)
    await sandbox.start()
    await prepare(sandbox, WORKLOAD)
    pods = await _pods(sandbox)
    active = sandbox.proxy.inject(Rule(write, fault, times=1, name=VICTIM)) if fault else []
    paused = {**AFTER, **PAUSED}
    await sandbox.change(MEMCACHEDS, VICTIM, BEFORE, paused)
    for each in active:
        await wait_until_injected(each, READY_TIMEOUT)
    await _wait_paused(sandbox)
    if disturb:
        await disturb(sandbox)
        await _wait_restored(sandbox)
    await check_quiet(sandbox)
    await _check_held(sandbox)
    if disturb is not _delete_pod:
        sandbox.check(await _pods(sandbox) == pods, "pods were replaced during the pause")
    await sandbox.change(MEMCACHEDS, VICTIM, paused, AFTER)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)
    await check_stable(sandbox, MEMCACHEDS, expected, RECOVERY, loose=True)


async def _wait_paused(sandbox: Sandbox) -> None:
    """Wait until the status reports the pause of the current spec, that no pod is updated, and what will be lost."""

    async def poll() -> bool:
        obj = await sandbox.get(MEMCACHEDS, VICTIM) or {}
        found = {each["reason"]: each for each in nested_list(obj, "status", "conditions")}
        shown = found.get(c.PAUSED, {"message": "", "observedGeneration": 0})
        current = shown["observedGeneration"] == obj["metadata"]["generation"]
        message: str = shown["message"]
        return current and "0 of 2 pods are updated" in message and message.endswith("their items are lost")

    await wait_until(poll, RECOVERY, "the pause is reported")


async def _wait_restored(sandbox: Sandbox) -> None:
    """Wait until the StatefulSet has its owner and the pod template from before the pause."""

    async def poll() -> bool:
        live = await sandbox.get(kinds.STATEFULSETS, VICTIM) or {}
        return bool(nested_map(live, "metadata").get("ownerReferences")) and _template_image(live) == IMAGE

    await wait_until(poll, RECOVERY, "the pod template from before the pause is restored")


async def _check_held(sandbox: Sandbox) -> None:
    """Check that the pods, and the published port, are those from before the pause."""
    live = await sandbox.get(kinds.STATEFULSETS, VICTIM) or {}
    sandbox.check(_template_image(live) == IMAGE, "the pod template was changed during the pause")
    pods, _ = await listed(sandbox.client, kinds.PODS, sandbox.namespace, "")
    images = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    sandbox.check(images == {IMAGE}, f"pods have other images during the pause: {images}")
    service = await sandbox.get(kinds.SERVICES, f"{VICTIM}-0") or {}
    (port,) = nested_list(service, "spec", "ports")
    data = await _connection(sandbox)
    obj = await sandbox.get(MEMCACHEDS, VICTIM) or {}
    ports = {str(port["port"]), data["MEMCACHED_PORT"], obj["status"]["servers"][0].rpartition(":")[2]}
    sandbox.check(ports == {str(PORT)}, f"the published ports are {ports} during the pause")


def _template_image(live: Object) -> str:
    (container,) = nested_list(live, "spec", "template", "spec", "containers")
    return container["image"]


async def _pods(sandbox: Sandbox) -> dict[str, str]:
    """The uid of each pod, by name."""
    found, _ = await listed(sandbox.client, kinds.PODS, sandbox.namespace, "")
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}


async def _connection(sandbox: Sandbox) -> Object:
    """The data of the ConfigMap."""
    return (await sandbox.get(kinds.CONFIG_MAPS, f"{VICTIM}-connection") or {}).get("data", {})


def _key(sandbox: Sandbox, resource: Resource = kinds.STATEFULSETS) -> Key:
    return Key(resource, sandbox.namespace, VICTIM)


async def _kill(sandbox: Sandbox) -> None:
    """SIGKILL the operator; it is restarted."""
    sandbox.operator.kill()
    await sandbox.wait_watching()


async def _change_template(sandbox: Sandbox) -> None:
    """Another client changes the image of the pods."""
    live = await sandbox.get(kinds.STATEFULSETS, VICTIM) or {}
    (container,) = nested_list(live, "spec", "template", "spec", "containers")
    template = {"spec": {"containers": [{**container, "image": ELSEWHERE}]}}
    await sandbox.merge(_key(sandbox), {"spec": {"template": template}})


async def _change_template_while_down(sandbox: Sandbox) -> None:
    """The same, just before the operator starts again."""
    sandbox.operator.kill()
    await _change_template(sandbox)


async def _remove_reference(sandbox: Sandbox) -> None:
    """Another client removes the owner reference."""
    await sandbox.merge(_key(sandbox), {"metadata": {"ownerReferences": None}})


async def _orphan(sandbox: Sandbox) -> None:
    """The object is deleted without its children and created again, with the pause and the changes."""
    await sandbox.delete(MEMCACHEDS, VICTIM, "Orphan")
    await sandbox.wait_deleted(MEMCACHEDS, VICTIM)
    obj = new_object(MEMCACHEDS, sandbox.namespace, VICTIM, {**AFTER, **PAUSED})
    await sandbox.client.request("POST", MEMCACHEDS.path(sandbox.namespace), obj)
    await _wait_paused(sandbox)


async def _change_strategy(sandbox: Sandbox) -> None:
    """Another client lets the controller of StatefulSets replace the pods, as far as it has a new template."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    await sandbox.merge(_key(sandbox), {"spec": {"updateStrategy": strategy}})


async def _delete_pod(sandbox: Sandbox) -> None:
    """A pod is deleted: its slot gets another one with the same template."""
    before = (await _pods(sandbox))[f"{VICTIM}-1"]
    await sandbox.delete(kinds.PODS, f"{VICTIM}-1")

    async def poll() -> bool:
        return (await _pods(sandbox)).get(f"{VICTIM}-1", before) != before

    await wait_until(poll, READY_TIMEOUT, "the slot has another pod")


async def run_not_ready(sandbox: Sandbox, _: References) -> None:
    """No pod is ready: all servers are published, because the slots keep their keys."""
    await sandbox.start()
    await sandbox.create(MEMCACHEDS, VICTIM, cache(size=2, **SLOTS, **NOWHERE))
    await wait_for_reason(sandbox, MEMCACHEDS, c.MINIMUM_REPLICAS_UNAVAILABLE)
    # Progress alone is written after PROGRESS_PERIOD, for example that no node fits the pods.
    await asyncio.sleep(PROGRESS_PERIOD)
    await check_quiet(sandbox)
    obj = await sandbox.get(MEMCACHEDS, VICTIM) or {}
    sandbox.check(obj["status"]["readyReplicas"] == 0, "the pods are ready, although no node fits them")
    listed = {
        "status": obj["status"].get("servers", []),
        **{k: v.split() for k, v in (await _connection(sandbox)).items()},
    }
    counts = {name: len(listed.get(name, [])) for name in ("status", "servers", "fixed-servers")}
    sandbox.check(set(counts.values()) == {2}, f"want all servers, also if they are not ready: {counts}")
    check_operator(sandbox)


async def run_foreign_service(sandbox: Sandbox, _: References) -> None:
    """The Service of a slot has another owner: its address is not listed until it is deleted."""
    body = {**FOREIGN["Service"], "metadata": {"name": f"{VICTIM}-0"}}
    await sandbox.client.request("POST", kinds.SERVICES.path(sandbox.namespace), body)
    await sandbox.start()
    await sandbox.create(MEMCACHEDS, VICTIM, cache(size=2, **SLOTS))
    await wait_for_reason(sandbox, MEMCACHEDS, c.CONFLICT)
    await check_quiet(sandbox)
    sandbox.check("fixed-servers" not in await _connection(sandbox), "the address of another owner's Service is listed")
    live = await sandbox.get(kinds.SERVICES, f"{VICTIM}-0") or {}
    sandbox.check(nested_map(live, "spec").get("selector") == LABELS, "another owner's Service was changed")
    await sandbox.delete(kinds.SERVICES, f"{VICTIM}-0")
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)
    await check_quiet(sandbox)
    sandbox.check("fixed-servers" in await _connection(sandbox), "the address of the Service is not listed")
    check_operator(sandbox)


async def run_service_rejected(sandbox: Sandbox, _: References, rejection: Reject) -> None:
    """The Service of a slot cannot be created for a minute: the operator tries it less and less often."""
    await sandbox.start()
    (active,) = sandbox.proxy.inject(Rule("create services", rejection, seconds=REJECTED, name=f"{VICTIM}-0"))
    await sandbox.create(MEMCACHEDS, VICTIM, cache(size=1, **SLOTS))
    await wait_until_injected(active, REJECTED + READY_TIMEOUT)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM, READY_TIMEOUT + MAX_DELAY)
    sent = sum(each.injected for each in sandbox.proxy.requests.entries)
    sandbox.check(sent <= MAX_ATTEMPTS, f"the Service was rejected {sent} times, want at most {MAX_ATTEMPTS}")
    await check_quiet(sandbox)
    check_operator(sandbox)


REJECTIONS = {
    "service-rejected": Reject(403, "Forbidden"),
    "namespace-terminating": Reject(404, "NotFound", cause="NamespaceTerminating"),
}
"""The rejections of the Service of a slot, by the name of the case."""
FAULTS: dict[str, Fault] = {
    **{f"crash/stable-pause/{{}}/{moment}": Kill(moment) for moment in ("before", "during", "after")},
    "lost-reply/stable-pause/{}/cut": LoseReply(),
    "lost-reply/stable-pause/{}/504": LoseReply(504),
}
DISTURBANCES: dict[str, Disturbance] = {
    "crash/stable-pause/killed": _kill,
    "drift/stable-pause/template-changed": _change_template,
    "drift/stable-pause/template-changed-while-down": _change_template_while_down,
    "drift/stable-pause/reference-removed": _remove_reference,
    "drift/stable-pause/orphaned": _orphan,
    "drift/stable-pause/strategy-changed": _change_strategy,
    "drift/stable-pause/pod-deleted": _delete_pod,
}


def cases() -> list[Case]:
    """Pauses with a fault at the first write, and with a change during them; servers that are not ready or not ours."""
    found = [
        Case(
            name.format(f"{verb}-statefulsets"),
            partial(run_paused, fault=fault, write=f"{verb} statefulsets"),
            sync_period=LONG_SYNC_PERIOD if isinstance(fault, LoseReply) else None,
        )
        for name, fault in FAULTS.items()
        for verb in ("migrate", "apply")
    ]
    found += [
        Case(name, partial(run_paused, disturb=disturb), sync_period=LONG_SYNC_PERIOD)
        for name, disturb in DISTURBANCES.items()
    ]
    others = {"not-ready": run_not_ready, "service-of-another-owner": run_foreign_service}
    found += [Case(f"drift/slots/{name}", run, sync_period=LONG_SYNC_PERIOD) for name, run in others.items()]
    return found + [
        Case(
            f"rejected/slots/{name}",
            partial(run_service_rejected, rejection=rejection),
            sync_period=LONG_SYNC_PERIOD,
            max_retry_delay=MAX_DELAY,
            limit=300,
        )
        for name, rejection in REJECTIONS.items()
    ]
