"""T9, further cases: admission with many parallel writes, large objects, and objects that are older than a rule."""

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from faults.case import Case, References
from faults.esr import VICTIM
from faults.registration import VALID, Registration, check_defaults, dry_run_create, error_of, registered, resource_of
from faults.sandbox import READY_TIMEOUT, FailedError, Sandbox, wait_for, wait_until
from faults.webhook import KINDS, Webhook, pair, webhook
from faults.workloads import IMAGE, new_object
from integration.control_plane import CRDS
from memcached_api.kinds import Kind
from memcached_api.validation.decoding import MAX_OBJECT_SIZE
from memcached_operator.kube.client import JSON_PATCH, ApiError
from memcached_operator.kube.resource import Key, Object

WRITES = 200
"""Number of parallel writes."""
BURST = 60.0
"""Seconds for all of them, on a very busy machine."""
MEMORY = 192.0
"""Memory limit of the admission process, in MiB."""
RETRY = 0.1
"""Seconds until a denied write is repeated."""
LONG_VALUE = "x" * 65_000
CRD_TIMEOUT = 30.0
"""Seconds until a changed CRD is in effect."""


TOO_LARGE = f"at most {MAX_OBJECT_SIZE} bytes"
"""Part of the webhook's denial of an object that the API server could not store."""


@dataclass
class Setup:
    """A kind, and an admission process that is registered for it."""

    sandbox: Sandbox
    kind: Kind[Any]
    webhook: Webhook
    registration: Registration

    async def create(self, name: str, spec: Object, **metadata: Any) -> Object:
        """Create an object."""
        resource = resource_of(self.kind)
        obj = new_object(resource, self.sandbox.namespace, name, spec)
        obj["metadata"] |= metadata
        return await self.sandbox.client.request("POST", resource.path(self.sandbox.namespace), obj)

    def key(self, name: str = VICTIM) -> Key:
        """Key of an object."""
        return Key(resource_of(self.kind), self.sandbox.namespace, name)

    async def merge(self, patch: Object, sub: str = "") -> Object:
        """Send a merge patch for the object."""
        return await self.sandbox.client.patch(self.key(), patch, subresource=sub)

    async def change(self, patch: Object, sub: str = "") -> Object:
        """Send a merge patch that must be accepted."""
        try:
            return await self.merge(patch, sub)
        except ApiError as error:
            raise FailedError(f"{patch} was denied: {error}") from error

    async def stored(self) -> list[Object]:
        """All objects of the kind."""
        found, _ = await self.sandbox.client.list(resource_of(self.kind), self.sandbox.namespace)
        return list(found)

    def check_defaulted(self, objects: list[Object]) -> None:
        """Check that each object has the webhook's defaults, so that none was stored without a review."""
        self.sandbox.check(objects, "nothing was stored")
        for obj in objects:
            check_defaults(self.sandbox, obj)


def minimal_spec(kind: Kind[Any], number: int = 0) -> Object:
    """A valid spec without the fields that admission sets."""
    return {**VALID[kind.name], "size": 1 + number}


async def parallel_writes(setup: Setup) -> None:
    """200 valid objects are created in parallel, and 200 invalid ones are denied with the name of the field."""
    started = time.monotonic()
    valid = [setup.create(f"good-{number}", minimal_spec(setup.kind)) for number in range(WRITES)]
    invalid = [
        error_of(partial(setup.create, f"bad-{number}", {**minimal_spec(setup.kind), "image": "A b"}))
        for number in range(WRITES)
    ]
    created, errors = await asyncio.gather(asyncio.gather(*valid), asyncio.gather(*invalid))
    setup.sandbox.check(time.monotonic() - started < BURST, f"the writes took longer than {BURST:g} s")
    setup.check_defaulted(created)
    setup.sandbox.check(
        all("spec.image" in str(each) for each in errors), f"a denial does not name the field: {errors[:1]}"
    )
    setup.sandbox.check(len(await setup.stored()) == WRITES, "an invalid object exists, or a valid one does not")
    setup.sandbox.check(setup.webhook.rss() < MEMORY, f"admission uses {setup.webhook.rss():.0f} MiB")


async def _burst(setup: Setup, meanwhile: Callable[[], Awaitable[None]]) -> tuple[list[Object], int]:
    """Create objects, a few in parallel, and call `meanwhile` after each 50; a denied creation is repeated.

    Returns the objects as accepted, and the number of denials.
    """
    slots = asyncio.Semaphore(8)
    created: list[Object] = []
    turns: set[str] = set()
    denials = 0

    async def one(number: int) -> None:
        async with slots:
            name = f"cache-{number}"
            await wait_for(until_accepted(name), BURST, f"{name} of the burst is accepted")
            if name in turns:
                await meanwhile()

    async def until_accepted(name: str) -> None:
        nonlocal denials
        while error := await error_of(lambda: create(name)):
            expected = "failed calling webhook" in str(error)
            setup.sandbox.check(expected, f"denied without the name of the webhook: {error}")
            denials += 1
            await asyncio.sleep(RETRY)

    async def create(name: str) -> None:
        created.append(await setup.create(name, minimal_spec(setup.kind)))
        if len(created) % 50 == 0:
            turns.add(name)

    await asyncio.gather(*(one(number) for number in range(WRITES)))
    return created, denials


async def rotated(setup: Setup) -> None:
    """The certificate is renewed four times during 200 writes: first the new CA is trusted, then the pair is served."""
    trusted = setup.webhook.pair.ca

    async def renew() -> None:
        nonlocal trusted
        new = pair()
        trusted += new.ca
        await setup.registration.set_client_config(setup.webhook.url, trusted)
        await asyncio.sleep(2)
        setup.webhook.files.write_pair(new)

    created, denials = await _burst(setup, renew)
    setup.sandbox.check(not denials, f"{denials} of {WRITES} writes were denied")
    setup.check_defaulted(created)
    setup.sandbox.check(len(setup.webhook.process.starts) == 1, "the process was restarted")


async def killed(setup: Setup) -> None:
    """The process is killed four times during 200 writes: some are denied at first, none is stored without a review."""
    kills: list[float] = []

    async def kill() -> None:
        kills.append(time.monotonic())
        setup.webhook.process.kill()

    created, denials = await _burst(setup, kill)
    setup.sandbox.check(denials, "no write was denied: the process was not killed during writes")
    setup.check_defaulted(created)
    stored = await setup.stored()
    setup.check_defaulted(stored)
    setup.sandbox.check(len(stored) == WRITES, f"{len(stored)} objects are stored, {WRITES} were accepted")
    await setup.webhook.start()
    setup.sandbox.check(len(kills) == WRITES // 50, f"{len(kills)} kills")
    setup.check_defaulted([await setup.create("afterwards", minimal_spec(setup.kind))])


async def large(setup: Setup) -> None:
    """Objects of the maximum size are accepted; larger ones are denied with a clear message."""
    notes = {"annotations": {"note": "x" * 250_000}}
    setup.check_defaulted([await setup.create("annotated", minimal_spec(setup.kind), **notes)])
    for size, words in (
        (300_000, "262144"),
        (2_000_000, "262144"),
        (2_900_000, TOO_LARGE),
        (3_300_000, "too large"),
    ):
        error = await error_of(
            partial(setup.create, "huge", minimal_spec(setup.kind), annotations={"note": "x" * size})
        )
        setup.sandbox.check(words in str(error), f"{size} bytes: {str(error)[:300]}")
    if setup.kind.name == "AppService":
        await _large_spec(setup)
    setup.sandbox.check(setup.webhook.rss() < MEMORY, f"admission uses {setup.webhook.rss():.0f} MiB")


async def _large_spec(setup: Setup) -> None:
    def envs(count: int) -> Object:
        return {
            **minimal_spec(setup.kind),
            "envs": [{"name": f"A{number}", "value": LONG_VALUE} for number in range(count)],
        }

    await setup.create(VICTIM, envs(20))
    live = await setup.merge({"metadata": {"labels": {"team": "a"}}, "spec": {"size": 2}})
    setup.sandbox.check(live["spec"]["size"] == 2, "the change was not stored")
    for count, words in ((26, "large"), (45, TOO_LARGE)):
        error = await error_of(partial(setup.create, "huge", envs(count)))
        setup.sandbox.check(words in str(error), f"an object of {count} * 64 KiB: {str(error)[:300]}")
    error = await error_of(partial(setup.merge, {"spec": envs(44)}))
    setup.sandbox.check(TOO_LARGE in str(error), f"an update from 1.3 MiB: {str(error)[:300]}")
    setup.sandbox.check(
        len((await setup.sandbox.get(setup.key().resource, VICTIM) or {})["spec"]["envs"]) == 20,
        "the denied change was stored",
    )
    error = await error_of(
        partial(dry_run_create, setup.sandbox, resource_of(setup.kind), {**envs(30), "image": "A b"})
    )
    setup.sandbox.check("spec.image" in str(error), f"an invalid object of 2 MB: {str(error)[:300]}")


@asynccontextmanager
async def without_rules(sandbox: Sandbox, kind: Kind[Any]) -> AsyncGenerator[None]:
    """The CRD accepts any spec during the block, like an older one without these rules."""
    key = Key(CRDS, "", f"{kind.plural}.{kind.group}")
    crd = await sandbox.client.get(key) or {}
    before, lax = crd["spec"]["versions"], copy.deepcopy(crd["spec"]["versions"])
    for version in lax:
        schema = version["schema"]["openAPIV3Schema"]
        schema.pop("x-kubernetes-validations")
        schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    async def put(versions: list[Object]) -> None:
        await sandbox.client.patch(key, [{"op": "replace", "path": "/spec/versions", "value": versions}], JSON_PATCH)

    async def lenient() -> bool:
        error = await error_of(lambda: dry_run_create(sandbox, resource_of(kind), {"size": 0, "image": "A b"}))
        return error is None

    async def strict() -> bool:
        return not await lenient()

    try:
        await put(lax)
        await wait_until(lenient, CRD_TIMEOUT, "the CRD has no rules")
        yield
    finally:
        await put(before)
        await wait_until(strict, CRD_TIMEOUT, "the CRD's rules are in effect again")


async def older_than_a_rule(sandbox: Sandbox, _: References, kind: Kind[Any]) -> None:
    """An object violates rules that are newer than itself: it can keep, but not extend, the violations."""
    spec: Object = {**minimal_spec(kind), "size": 0, "image": "A b"}
    resource = resource_of(kind)
    async with without_rules(sandbox, kind):
        for name in (VICTIM, "other"):
            obj = new_object(resource, sandbox.namespace, name, spec)
            obj["metadata"]["finalizers"] = ["example.com/hold"]
            await sandbox.client.request("POST", resource.path(sandbox.namespace), obj)
    async with (
        webhook(sandbox) as admission,
        registered(sandbox, admission.url, admission.pair.ca, admission) as registration,
    ):
        setup = Setup(sandbox, kind, admission, registration)
        sandbox.operator.start()
        await wait_until(partial(_degraded, setup), READY_TIMEOUT, "the status reports the field errors")
        await setup.change({"metadata": {"labels": {"team": "a"}}})
        await setup.change({"metadata": {"finalizers": None}})
        await setup.change({"status": {"observedGeneration": 1}}, "status")
        for worse in ({"size": -1}, {"resources": {"limits": {"cpu": "-1"}}}, {"image": "B b"}):
            error = await error_of(partial(setup.merge, {"spec": worse}))
            sandbox.check(
                f"spec.{next(iter(worse))}" in str(error), f"a new violation was not denied: {worse}: {error}"
            )
        await setup.change({"spec": {"size": 1}})
        live = await setup.change({"spec": {"image": IMAGE}})
        sandbox.check(live["spec"]["size"] == 1, "the first fix is lost")
        await sandbox.wait_ready(resource, VICTIM)
        await sandbox.delete(resource, "other")
        await sandbox.client.patch(setup.key("other"), {"metadata": {"finalizers": None}})
        await sandbox.wait_deleted(resource, "other")
        sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")


async def _degraded(setup: Setup) -> bool:
    live = await setup.sandbox.get(setup.key().resource, VICTIM) or {}
    found = {each["type"]: each for each in live.get("status", {}).get("conditions", [])}
    message = found.get("Degraded", {}).get("message", "")
    return all(part in message for part in ("spec.size", "spec.image"))


async def run_scenario(
    sandbox: Sandbox, _: References, kind: Kind[Any], scenario: Callable[[Setup], Awaitable[None]]
) -> None:
    """Run a scenario with a registered admission process."""
    async with (
        webhook(sandbox) as admission,
        registered(sandbox, admission.url, admission.pair.ca, admission) as registration,
    ):
        await scenario(Setup(sandbox, kind, admission, registration))
        sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")


SCENARIOS: dict[str, Callable[[Setup], Awaitable[None]]] = {
    "parallel-200": parallel_writes,
    "rotated-mid-burst": rotated,
    "killed-mid-burst": killed,
    "large": large,
}


def cases() -> list[Case]:
    """Each scenario for both kinds. Those that change a CRD run alone."""
    found: list[Case] = []
    for kind in KINDS:
        for name, scenario in SCENARIOS.items():
            found.append(
                Case(f"T9/{name}/{kind.plural}", partial(run_scenario, kind=kind, scenario=scenario), limit=180)
            )
        found.append(
            Case(f"T9/older-than-a-rule/{kind.plural}", partial(older_than_a_rule, kind=kind), alone=True, limit=180)
        )
    return found
