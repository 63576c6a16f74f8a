"""Faults at a write."""

import time
from functools import partial

from aiohttp import web

from faults import workloads
from faults.case import Case, References, in_gate, prepare, user_action, wait_all_deleted, wait_beside
from faults.esr import VICTIM, check_operator, check_quiet, check_stable, with_bystander
from faults.faulty import Exchange, Fault, Kill, LoseReply, Reject, Reset
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, READY_TIMEOUT, Sandbox, wait_until, wait_until_injected
from faults.state import CHILDREN
from faults.workloads import Workload
from memcached_operator.kube.resource import Key

RECOVERY = 30.0
"""Seconds from the end of a fault until the state is correct, including the longest retry delay and a start of the
operator on a very busy machine: 1 s on an idle one.
"""
FINALIZER = "example.com/held"
"""Holds an object that is being deleted."""
RETRY = 5.0
"""Seconds until a failed write is retried: 0.5 on an idle machine."""


async def run_with_fault(
    sandbox: Sandbox, references: References, workload: Workload, rule: Rule, limit: float = 30.0
) -> None:
    """Run a workload while a rule injects a fault into its writes, for at most `limit` seconds."""
    expected = await references.of(workload)
    await sandbox.start()
    await prepare(sandbox, workload)
    (active,) = sandbox.proxy.inject(rule)
    since = time.monotonic()

    async def was_written() -> bool:
        written = sandbox.proxy.requests.writes(since)
        return any(each.call.matches(rule.what, VICTIM) for each in written)

    async def work() -> None:
        if rule.skip and rule.what.endswith("/status"):
            # To get two status patches, the operator must write the first one before it learns the final state.
            sandbox.proxy.hold("deployments", "statefulsets", "pods")
        await user_action(sandbox, workload)
        if rule.skip:
            await wait_until(was_written, limit, f"the operator sends the first call that matches {rule.what}")
        sandbox.proxy.release()
        await wait_until_injected(active, limit)

    bystander = {"image": workloads.IMAGE, "size": 1, **(workloads.PROXY if workload.beside else {})}
    await with_bystander(sandbox, workload.resource, bystander, work, READY_TIMEOUT)
    await wait_beside(sandbox, workload, RECOVERY + sandbox.settings.sync_time)
    await check_stable(sandbox, workload.resource, expected, RECOVERY + sandbox.settings.sync_time)


async def run_unseen(sandbox: Sandbox, references: References, workload: Workload, what: str) -> None:
    """The reply to a write is lost, and no event shows its result or causes a reconcile: the operator must retry."""
    expected = await references.of(workload)
    await sandbox.start()
    await prepare(sandbox, workload)
    resource = what.partition(" ")[2]

    async def lose_reply(exchange: Exchange) -> web.StreamResponse:
        sandbox.proxy.hold(workload.resource.plural)
        return await LoseReply()(exchange)

    (active,) = sandbox.proxy.inject(Rule(what, lose_reply, times=1, name=VICTIM))
    # From the start: the event of an earlier write could cause a reconcile, too.
    sandbox.proxy.hold(*(child.plural for child in CHILDREN), "pods")
    await user_action(sandbox, workload)
    await wait_until_injected(active, READY_TIMEOUT)

    async def retried() -> bool:
        # A creation is repeated only if a read finds no object.
        calls = [each for each in sandbox.proxy.requests.entries if each.call.name == VICTIM]
        sent = [each for each in calls if each.call.matches(f"* {resource}*")]
        return any(each.injected for each in sent[:-1])

    await wait_until(retried, RETRY, f"the operator retries {what}")
    sandbox.proxy.release()
    await check_stable(sandbox, workload.resource, expected, RECOVERY)


async def run_deletion(sandbox: Sandbox, _: References, moment: str) -> None:
    """SIGKILL before, during or after the deletion of an object; `foreground`: without SIGKILL, held by a finalizer."""
    workload = workloads.BY_NAME["delete"]
    await sandbox.start()
    await prepare(sandbox, workload)
    if moment == "before":
        sandbox.operator.kill()
    if moment == "foreground":
        await _delete_children_first(sandbox, Key(workload.resource, sandbox.namespace, VICTIM))
    else:
        await user_action(sandbox, workload)
    if moment == "during":
        sandbox.operator.kill()
    await wait_all_deleted(sandbox, workload)
    if moment == "after":
        sandbox.operator.kill()
    await check_quiet(sandbox)
    created = sandbox.proxy.requests.counts("create", VICTIM)
    sandbox.check(created == {"deployments": 1, "services": 1}, f"children were created again: {created}")
    check_operator(sandbox)


async def _delete_children_first(sandbox: Sandbox, key: Key) -> None:
    """Delete an object, which exists for a while after its children."""
    await sandbox.merge(key, {"metadata": {"finalizers": [FINALIZER]}})
    await sandbox.delete(key.resource, key.name, "Foreground")
    for resource in CHILDREN:
        await sandbox.wait_deleted(resource, key.name, RECOVERY)
    await check_quiet(sandbox)
    await sandbox.merge(key, {"metadata": {"finalizers": None}})


def crash() -> list[Case]:
    """SIGKILL before, during and after every write of the workloads."""
    moments = ("before", "during", "after")
    at_writes = [
        Case(
            f"crash/{workload.name}/{_name(what, number)}/{moment}",
            partial(
                run_with_fault,
                workload=workload,
                rule=Rule(what, Kill(moment), times=1, skip=number, name=_named(what, workload)),
            ),
        )
        for workload in (*workloads.WORKLOADS, *workloads.SLOT_WORKLOADS, *workloads.PROXY_WORKLOADS)
        for what, number in workload.numbered_writes()
        for moment in (moments if workload != workloads.PROXY_SHRINK else ("during",))
    ]
    at_guards = [
        Case(
            f"crash/{workload.name}/{_name(what, 0)}/{moment}",
            partial(run_with_fault, workload=workload, rule=Rule(what, Kill(moment), times=1, name=VICTIM)),
        )
        for what, workload in WRITES_OF_GUARDS.items()
        for moment in ("during" if what.startswith("create") else "before",)
    ]
    return [
        *at_writes,
        *(Case(f"crash/delete/{moment}", partial(run_deletion, moment=moment)) for moment in (*moments, "foreground")),
        *at_guards,
    ]


def lost_reply() -> list[Case]:
    """The write is executed, its reply is lost. Nothing else may cause the retry, such as a sync."""
    return [
        Case(
            f"lost-reply/{workload.name}/{_name(what, number)}/{how}",
            partial(
                run_with_fault,
                workload=workload,
                rule=Rule(what, fault, times=1, skip=number, name=_named(what, workload)),
            ),
            sync_period=LONG_SYNC_PERIOD,
        )
        for workload in (*workloads.WORKLOADS, *workloads.SLOT_WORKLOADS, *workloads.PROXY_WORKLOADS)
        for what, number in workload.numbered_writes()
        for how, fault in (("cut", LoseReply()), ("504", LoseReply(504)))
        if how == "cut" or workload not in workloads.PROXY_WORKLOADS
    ] + [
        Case(
            f"lost-reply/{workload.name}/{_name(what, 0)}/unseen",
            partial(run_unseen, workload=workload, what=what),
            sync_period=LONG_SYNC_PERIOD,
        )
        for what, workload in {**WRITE_KINDS, **WRITES_OF_GUARDS, **WRITES_OF_SLOTS}.items()
    ]


WRITE_KINDS = {
    "create deployments": workloads.BY_NAME["create"],
    "create services": workloads.BY_NAME["create"],
    "migrate deployments": workloads.BY_NAME["memory"],
    "apply deployments": workloads.BY_NAME["memory"],
    "patch deployments": workloads.BY_NAME["scale-up"],
    "apply services": workloads.PORT,
    "delete services": workloads.BY_NAME["ports-to-none"],
    "patch memcacheds/status": workloads.BY_NAME["scale-up"],
    "patch appservices/status": workloads.BY_NAME["ports-back"],
}
"""The kinds of writes, and a workload that causes each."""
WRITES_OF_GUARDS = {
    f"{verb} {resource}": workload
    for resource in ("poddisruptionbudgets", "networkpolicies")
    for verb, workload in (
        ("create", workloads.GUARDS_ON),
        ("apply", workloads.GUARDS_CHANGED),
        ("delete", workloads.GUARDS_OFF),
    )
}
"""Those of further children: one case of each campaign, because all children share the handling of errors."""

WRITES_OF_SLOTS = {
    "create statefulsets": workloads.BY_NAME["stable-create"],
    "apply statefulsets": workloads.BY_NAME["stable-image"],
    "patch statefulsets": workloads.BY_NAME["stable-scale-down"],
}

REJECTIONS: dict[str, Fault] = {
    "409": Reject(409, "Conflict"),
    "429": Reject(429, "TooManyRequests"),
    "429-retry-after-7": Reject(429, "TooManyRequests", retry_after=7),
    "500": Reject(500, "InternalError"),
    "503": Reject(503, "ServiceUnavailable"),
    "504": Reject(504, "Timeout"),
    "reset": Reset(),
    "404-terminating": Reject(404, "NotFound", cause="NamespaceTerminating"),
}
LASTING = ("409", "503", "reset")
"""Those with which a write is also rejected 20 times and for 60 s. The others differ only in the first retries."""
SHORT_LIMIT = 40.0
"""Seconds until three failures in a row have been injected. Without a sync, which could cause the retries."""
UNPROCESSABLE = Reject(422, "Invalid")
FORBIDDEN = Reject(403, "Forbidden")


def rejected() -> list[Case]:
    """Writes are rejected once, 3 times, 20 times, or for 60 s; with errors that are final, less often."""
    found: list[Case] = []
    for what, workload in WRITE_KINDS.items():
        for how, fault in REJECTIONS.items():
            found += [_rejected(what, workload, how, fault, times) for times in (1, 3)]
        for how in LASTING:
            found.append(_rejected(what, workload, how, REJECTIONS[how], 20))
            found.append(_rejected(what, workload, how, REJECTIONS[how], seconds=60))
        found.append(_rejected(what, workload, "422", UNPROCESSABLE, 1))
        found.append(_rejected(what, workload, "403", FORBIDDEN, seconds=10))
    for what, workload in WRITES_OF_SLOTS.items():
        found += [_rejected(what, workload, how, fault, 1) for how, fault in REJECTIONS.items()]
    found += [_rejected(what, workload, "503", REJECTIONS["503"], 3) for what, workload in WRITES_OF_GUARDS.items()]
    found += [
        _rejected("patch memcachedproxies/status", workloads.PROXY_GROW, how, REJECTIONS[how], 3) for how in LASTING
    ]
    # A rejected Event is not sent again.
    events = {**REJECTIONS, "422": UNPROCESSABLE, "403": FORBIDDEN}
    return found + [
        _rejected("create events", workloads.BY_NAME["create"], how, fault, 1) for how, fault in events.items()
    ]


def _rejected(
    what: str, workload: Workload, how: str, fault: Fault, times: int | None = None, seconds: float | None = None
) -> Case:
    amount = f"{times}" if times else f"{seconds:g}s"
    name = f"{VICTIM}.*" if what == "create events" else VICTIM
    rule = Rule(what, fault, times=times, seconds=seconds, name=name)
    return Case(
        f"rejected/{what.replace(' ', '-').replace('/', '-')}/{how}/{amount}",
        partial(run_with_fault, workload=workload, rule=rule, limit=SHORT_LIMIT if times == 3 else 180),
        sync_period=LONG_SYNC_PERIOD if times == 3 else None,
        limit=360,
    )


def _named(what: str, workload: Workload) -> str:
    """The name of the object that a write is about."""
    if workload.beside is not None and what.endswith("statefulsets"):
        return workload.beside.name
    return f"{VICTIM}-connection" if what.endswith("configmaps") else VICTIM


def _name(what: str, number: int) -> str:
    return f"{what.replace(' ', '-').replace('/', '-')}-{number + 1}"


def cases() -> list[Case]:
    """All cases of crash, lost-reply and rejected."""
    return in_gate(
        [*crash(), *lost_reply(), *rejected()],
        "crash/create/create-services-1/during",
        "lost-reply/create/create-services-1/cut",
        "lost-reply/create/patch-memcacheds-status-1/cut",
        "rejected/create-services/503/3",
    )
