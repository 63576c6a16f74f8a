"""T1, T2 and T3: something happens to a write."""

import time
from fnmatch import fnmatchcase
from functools import partial

from faults.case import Case, References, act, gone, prepare
from faults.esr import VICTIM, beside, calm, quiet, stable
from faults.faulty import FieldError, Kill, Lose, Refuse, Reset
from faults.rules import Rule
from faults.stage import NORMAL, Stage, holding, until
from faults.workloads import BY_NAME, IMAGE, PORT, WORKLOADS, Workload

GATE_WORKLOADS = ("create", "ports-to-none")
RECOVERY = 30.0
"""Seconds from the end of a fault until all is as it should be, the longest retry delay included, and a start of the
operator on a very busy machine: 1 s on an idle one."""


async def struck(stage: Stage, references: References, workload: Workload, rule: Rule, limit: float = 30.0) -> None:
    """A workload whose writes are struck by a rule; `limit` is how many seconds the fault may take."""
    expected = await references.of(workload)
    stage.operator.start()
    await stage.watching()
    await prepare(stage, workload)
    (armed,) = stage.proxy.arm(rule)
    since = time.monotonic()

    async def answered() -> bool:
        written = stage.proxy.journal.writes(since)
        return any(each.call.matches(rule.what, VICTIM) for each in written)

    async def work() -> None:
        if rule.skip and rule.what.endswith("/status"):
            # That the end is told by a patch of its own, the beginning must be told before the end is known.
            stage.proxy.hold("deployments", "pods")
        await act(stage, workload)
        if rule.skip:
            await until(answered, limit, f"the first of the calls: {rule.what}")
        stage.proxy.release()
        await holding(armed.over.wait(), limit, f"the fault strikes: {rule.what}")

    await beside(stage, workload.resource, {"image": IMAGE, "size": 1}, work, NORMAL)
    await stable(stage, workload.resource, expected, RECOVERY + stage.settings.relist)


async def deleted(stage: Stage, _: References, moment: str) -> None:
    """SIGKILL around the deletion of an object; or, in the foreground, only that the operator keeps still."""
    workload = BY_NAME["delete"]
    stage.operator.start()
    await stage.watching()
    await prepare(stage, workload)
    if moment == "before":
        stage.operator.kill()
    if moment == "foreground":
        await stage.delete(workload.resource, VICTIM, "Foreground")
    else:
        await act(stage, workload)
    if moment == "during":
        stage.operator.kill()
    await gone(stage, workload)
    if moment == "after":
        stage.operator.kill()
    await quiet(stage)
    made = stage.proxy.journal.counts("create", VICTIM)
    stage.holds(made == {"deployments": 1, "services": 1}, f"children were made again: {made}")
    calm(stage)


def t1() -> list[Case]:
    """T1: SIGKILL before, during and after every write of the workloads."""
    moments = ("before", "during", "after")
    at_writes = [
        Case(
            f"T1/{workload.name}/{_name(what, number)}/{moment}",
            partial(struck, workload=workload, rule=Rule(what, Kill(moment), times=1, skip=number, name=VICTIM)),
            gate=number == 0 and moment == "during" and workload.name in GATE_WORKLOADS,
        )
        for workload in WORKLOADS
        for what, number in workload.classes()
        for moment in moments
    ]
    return at_writes + [
        Case(f"T1/delete/{moment}", partial(deleted, moment=moment)) for moment in (*moments, "foreground")
    ]


def t2() -> list[Case]:
    """T2: the write is carried out, its reply is lost."""
    return [
        Case(
            f"T2/{workload.name}/{_name(what, number)}/{how}",
            partial(struck, workload=workload, rule=Rule(what, fault, times=1, skip=number, name=VICTIM)),
            gate=number == 0 and workload.name in GATE_WORKLOADS and how == "cut",
        )
        for workload in WORKLOADS
        for what, number in workload.classes()
        for how, fault in (("cut", Lose()), ("504", Lose(504)))
    ]


CLASSES = {
    "create deployments": BY_NAME["create"],
    "create services": BY_NAME["create"],
    "migration_patch deployments": BY_NAME["scale-up"],
    "apply deployments": BY_NAME["memory"],
    "apply services": PORT,
    "delete services": BY_NAME["ports-to-none"],
    "patch memcacheds/status": BY_NAME["scale-up"],
    "patch appservices/status": BY_NAME["ports-back"],
}
"""The kinds of writes, and what a user does to cause each."""

REFUSALS: dict[str, FieldError] = {
    "409": Refuse(409, "Conflict"),
    "429": Refuse(429, "TooManyRequests"),
    "429-retry-after-7": Refuse(429, "TooManyRequests", retry_after=7),
    "500": Refuse(500, "InternalError"),
    "503": Refuse(503, "ServiceUnavailable"),
    "504": Refuse(504, "Timeout"),
    "reset": Reset(),
    "404-terminating": Refuse(404, "NotFound", cause="NamespaceTerminating"),
}
SOON, SELDOM = 40.0, 600.0
"""Seconds: so soon three tries are over where they follow one another; a re-list would come too late to cause them."""
UNPROCESSABLE = Refuse(422, "Invalid")
FORBIDDEN = Refuse(403, "Forbidden")
GATE = {("503", "3"): "*", ("409", "1"): "apply *", ("reset", "1"): "create deployments"}
"""Of these refusals, which kinds of writes are in the gate."""


def t3() -> list[Case]:
    """T3: writes are refused: once, 3 times, 20 times, for 60 s; for what is no retry at all, see the table."""
    found: list[Case] = []
    for what, workload in CLASSES.items():
        for how, fault in REFUSALS.items():
            found += [_refused(what, workload, how, fault, times) for times in (1, 3, 20)]
            found.append(_refused(what, workload, how, fault, seconds=60))
        found.append(_refused(what, workload, "422", UNPROCESSABLE, 1))
        found.append(_refused(what, workload, "403", FORBIDDEN, seconds=10))
    # An Event that is refused is not posted again.
    events = {**REFUSALS, "422": UNPROCESSABLE, "403": FORBIDDEN}
    return found + [_refused("create events", BY_NAME["create"], how, fault, 1) for how, fault in events.items()]


def _refused(
    what: str, workload: Workload, how: str, fault: FieldError, times: int | None = None, seconds: float | None = None
) -> Case:
    amount = f"{times}" if times else f"{seconds:g}s"
    name = f"{VICTIM}.*" if what == "create events" else VICTIM
    rule = Rule(what, fault, times=times, seconds=seconds, name=name)
    return Case(
        f"T3/{what.replace(' ', '-').replace('/', '-')}/{how}/{amount}",
        partial(struck, workload=workload, rule=rule, limit=SOON if times == 3 else 180),
        gate=fnmatchcase(what, GATE.get((how, amount), "")),
        relist=SELDOM if times == 3 else None,
        limit=360,
    )


def _name(what: str, number: int) -> str:
    return f"{what.replace(' ', '-').replace('/', '-')}-{number + 1}"


def cases() -> list[Case]:
    """All of them."""
    return [*t1(), *t2(), *t3()]
