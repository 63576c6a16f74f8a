"""Eventually stable reconciliation: the checks that every case makes after its fault."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faults.calls import Entry, max_requests
from faults.sandbox import TIMEOUT_FACTOR, FailedError, Sandbox, wait_until
from faults.state import difference, is_ready, state_of, without_generations
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD
from memcached_operator.kube.resource import Object, Resource

JITTER = 1.1
"""The operator's sync period varies by this factor at most."""
SYNC_MARGIN = 2.0
"""Seconds added to a sync period, so that the operator can act on what it listed."""
MAX_QUIET = 12.0
"""Upper limit of the period without writes, in seconds, for cases with a long sync period."""
RATE, SPAN = 5, 2.0
"""At most this many requests per second during a fault, averaged over SPAN seconds."""
VICTIM, BYSTANDER = "cache", "bystander"


@dataclass(frozen=True)
class Reference:
    """Result of a run without faults: the masked state, and how often each child was created and deleted."""

    state: Object
    created: Mapping[str, int] = field(default_factory=dict[str, int])
    deleted: Mapping[str, int] = field(default_factory=dict[str, int])


async def reference(sandbox: Sandbox, resource: Resource, name: str = VICTIM) -> Reference:
    """The current state, after a period without writes."""
    await check_quiet(sandbox)
    state = await state_of(sandbox.client, resource, sandbox.namespace, name)
    requests = sandbox.proxy.requests
    return Reference(state, requests.counts("create", name), requests.counts("delete", name))


async def wait_for_state(
    sandbox: Sandbox, resource: Resource, expected: Reference, seconds: float, *, loose: bool = False
) -> None:
    """Wait until an object has the expected state. `loose`: ignore generations and field managers.

    Raises TimedOutError with the last difference.
    """
    comparable = without_generations if loose else _unchanged
    last = "no state was read"

    async def poll() -> bool:
        nonlocal last
        obj = await sandbox.get(resource, VICTIM)
        if expected.state[resource.plural] is not None and not is_ready(obj):
            last = f"it is not ready: {_conditions(obj)}"
            return False
        found = await state_of(sandbox.client, resource, sandbox.namespace, VICTIM)
        last = difference(comparable(found), comparable(expected.state))
        return not last

    await wait_until(
        poll, seconds, lambda: f"the state differs from a run without the fault after {seconds:g} s: {last}"
    )


async def check_stable(
    sandbox: Sandbox, resource: Resource, expected: Reference, seconds: float, *, loose: bool = False
) -> None:
    """Check everything after the fault: state, counts, a period without writes, exits and log."""
    await wait_for_state(sandbox, resource, expected, seconds, loose=loose)
    await check_quiet(sandbox)
    await wait_for_state(sandbox, resource, expected, 1, loose=loose)
    requests = sandbox.proxy.requests
    for verb, wanted in (("create", expected.created), ("delete", expected.deleted)):
        found = requests.counts(verb, VICTIM)
        sandbox.check(found == wanted, f"children with {verb}: got {dict(found)}, want {dict(wanted)}")
    check_operator(sandbox)


async def check_quiet(sandbox: Sandbox) -> None:
    """Check that nothing is written, and little read, while everything is listed once more."""
    await asyncio.sleep(TIMEOUT_FACTOR * SYNC_MARGIN / 2)
    since = time.monotonic()
    await asyncio.sleep(min(max(sandbox.settings.sync_period, PROGRESS_PERIOD), MAX_QUIET) * JITTER + SYNC_MARGIN)
    written = sandbox.proxy.requests.writes(since)
    sandbox.check(not written, f"writes in the period without changes: {'; '.join(map(str, written))}")
    check_rate([each for each in sandbox.proxy.requests.since(since) if each.call.verb == "get" and each.call.name])


def check_operator(sandbox: Sandbox, allowed_exits: int = 0) -> None:
    """Check that the operator did not exit, logged no traceback, and did not repeat failing requests too often."""
    operator = sandbox.operator
    exits = operator.exits
    sandbox.check(len(exits) <= allowed_exits and 0 not in exits, f"the operator exited with {exits}")
    text = operator.log_text()
    sandbox.check("Traceback" not in text, f"the log contains a traceback: {text[text.find('Traceback') :][:2000]}")
    sandbox.check("unexpected error" not in text, "the log contains an unexpected error")
    check_rate([entry for entry in sandbox.proxy.requests.entries if entry.injected])


def check_rate(entries: list[Entry]) -> None:
    """Check that there were at most RATE requests per second."""
    most = max_requests(entries, SPAN)
    if most > RATE * SPAN:
        raise FailedError(f"{most} requests within {SPAN:g} s, the limit is {RATE * SPAN:g}")


async def with_bystander(
    sandbox: Sandbox, resource: Resource, spec: Mapping[str, Any], work: Callable[[], Awaitable[Any]], seconds: float
) -> None:
    """Run `work` while another object is created, which must become ready in the usual time."""

    async def bystander() -> None:
        await sandbox.create(resource, BYSTANDER, spec)
        await sandbox.wait_ready(resource, BYSTANDER, seconds)

    await asyncio.gather(work(), bystander())


def _unchanged(state: Object) -> Object:
    return state


def _conditions(obj: Object | None) -> str:
    if obj is None:
        return "it does not exist"
    found = {
        each["type"]: f"{each['status']} {each['message']}" for each in obj.get("status", {}).get("conditions", [])
    }
    return f"generation {obj['metadata']['generation']}, {found}"
