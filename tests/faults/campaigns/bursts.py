"""More cases of admission: many parallel writes, large objects, objects older than a rule, and a CRD without rules."""

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
from memcached_api.kind import Kind
from memcached_api.validation.decoding import MAX_OBJECT_SIZE
from memcached_operator.kube.client import JSON_PATCH, ApiError
from memcached_operator.kube.resource import Key, Object
from support.lists import listed

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
        found, _ = await listed(self.sandbox.client, resource_of(self.kind), self.sandbox.namespace)
        return list(found)

    def check_defaulted(self, objects: list[Object]) -> None:
        """Check that each object has the webhook's defaults, so that none was stored without a review."""
        self.sandbox.check(objects, "nothing was stored")
        for obj in objects:
            check_defaults(self.sandbox, obj)


def minimal_spec(kind: Kind[Any]) -> Object:
    """A valid spec without the fields that admission sets."""
    return {**VALID[kind.name], "size": 1}


async def parallel_writes(setup: Setup) -> None:
    """200 valid objects are created in parallel."""
    started = time.monotonic()
    created: list[Object] = []

    async def create(number: int) -> None:
        created.append(await setup.create(f"cache-{number}", minimal_spec(setup.kind)))

    errors = await asyncio.gather(*(error_of(partial(create, number)) for number in range(WRITES)))
    denied = [error for error in errors if error]
    setup.sandbox.check(not denied, f"{len(denied)} of {WRITES} valid objects were denied: {denied[:1]}")
    setup.sandbox.check(time.monotonic() - started < BURST, f"the writes took longer than {BURST:g} s")
    setup.check_defaulted(created)
    setup.sandbox.check(len(await setup.stored()) == WRITES, "not all objects are stored")
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
    for size, words in ((300_000, "262144"), (2_000_000, "262144"), (2_900_000, TOO_LARGE), (3_300_000, "too large")):
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
        return await error_of(lambda: dry_run_create(sandbox, resource_of(kind), invalid_spec(kind))) is None

    async def strict() -> bool:
        return not await lenient()

    try:
        await put(lax)
        await wait_until(lenient, CRD_TIMEOUT, "the CRD has no rules")
        yield
    finally:
        await put(before)
        await wait_until(strict, CRD_TIMEOUT, "the CRD's rules are in effect again")


async def without_crd_rules(sandbox: Sandbox, _: References, kind: Kind[Any]) -> None:
    """The CRD accepts any spec, so that only our process can deny what is invalid. An existing object is invalid."""
    async with without_rules(sandbox, kind):
        await create_invalid(sandbox, kind, VICTIM)
        async with running_webhook(sandbox, kind) as setup:
            await _check_creations(setup)
            await _check_changes(setup)


async def _check_creations(setup: Setup) -> None:
    """200 invalid objects, created in parallel, are denied: each denial names its object and its fields."""
    names = [f"bad-{number}" for number in range(WRITES)]
    spec = invalid_spec(setup.kind)
    errors = await asyncio.gather(*(error_of(partial(setup.create, name, spec)) for name in names))
    accepted = [name for name, error in zip(names, errors, strict=True) if error is None]
    setup.sandbox.check(not accepted, f"{len(accepted)} of {WRITES} invalid objects were accepted")
    for name, error in zip(names, errors, strict=True):
        _check_denial(setup, error, f'"{name}"', "spec.size", "spec.image")
    setup.sandbox.check(len(await setup.stored()) == 1, "a denied object exists")


async def _check_changes(setup: Setup) -> None:
    """An invalid object can keep its violations, but it cannot get others."""
    await setup.change({"metadata": {"labels": {"team": "a"}}})
    for worse in ({"resources": {"limits": {"cpu": "-1"}}}, {"image": "B b"}):
        error = await error_of(partial(setup.merge, {"spec": worse}))
        _check_denial(setup, error, f'"{VICTIM}"', f"spec.{next(iter(worse))}")
    await setup.change({"spec": {"size": 1, "image": IMAGE}})


def _check_denial(setup: Setup, error: ApiError | None, *parts: str) -> None:
    """Check that the validating webhook has denied a write, with these parts in the message."""
    by = f'admission webhook "v{setup.kind.name.lower()}.{setup.kind.group}" denied the request'
    missing = [part for part in (by, *parts) if part not in str(error)]
    setup.sandbox.check(not missing, f"the denial does not contain {missing}: {error}")


def invalid_spec(kind: Kind[Any]) -> Object:
    """A spec that violates two rules."""
    return {**minimal_spec(kind), "size": 0, "image": "A b"}


async def create_invalid(sandbox: Sandbox, kind: Kind[Any], name: str, *finalizers: str) -> None:
    """Create an object that violates rules, while neither the CRD nor a webhook denies it."""
    resource = resource_of(kind)
    obj = new_object(resource, sandbox.namespace, name, invalid_spec(kind))
    obj["metadata"]["finalizers"] = list(finalizers)
    await sandbox.client.request("POST", resource.path(sandbox.namespace), obj)


@asynccontextmanager
async def running_webhook(sandbox: Sandbox, kind: Kind[Any]) -> AsyncGenerator[Setup]:
    """An admission process that is registered during the block, and that must not fail."""
    async with (
        webhook(sandbox) as admission,
        registered(sandbox, admission.url, admission.pair.ca, admission) as registration,
    ):
        yield Setup(sandbox, kind, admission, registration)
        sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")


async def older_than_a_rule(sandbox: Sandbox, _: References, kind: Kind[Any]) -> None:
    """An object violates rules of the CRD and the webhook that are newer than itself: it can be changed and fixed."""
    resource = resource_of(kind)
    async with without_rules(sandbox, kind):
        for name in (VICTIM, "other"):
            await create_invalid(sandbox, kind, name, "example.com/hold")
    async with running_webhook(sandbox, kind) as setup:
        sandbox.operator.start()
        await wait_until(partial(_degraded, setup), READY_TIMEOUT, "the status reports the field errors")
        await setup.change({"metadata": {"labels": {"team": "a"}}})
        await setup.change({"metadata": {"finalizers": None}})
        await setup.change({"status": {"observedGeneration": 1}}, "status")
        await setup.change({"spec": {"size": 1}})
        live = await setup.change({"spec": {"image": IMAGE}})
        sandbox.check(live["spec"]["size"] == 1, "the first fix is lost")
        await sandbox.wait_ready(resource, VICTIM)
        await sandbox.delete(resource, "other")
        await sandbox.client.patch(setup.key("other"), {"metadata": {"finalizers": None}})
        await sandbox.wait_deleted(resource, "other")


async def _degraded(setup: Setup) -> bool:
    live = await setup.sandbox.get(setup.key().resource, VICTIM) or {}
    found = {each["type"]: each for each in live.get("status", {}).get("conditions", [])}
    message = found.get("Degraded", {}).get("message", "")
    return all(part in message for part in ("spec.size", "spec.image"))


async def run_scenario(
    sandbox: Sandbox, _: References, kind: Kind[Any], scenario: Callable[[Setup], Awaitable[None]]
) -> None:
    """Run a scenario with a registered admission process."""
    async with running_webhook(sandbox, kind) as setup:
        await scenario(setup)


SCENARIOS: dict[str, Callable[[Setup], Awaitable[None]]] = {
    "parallel-200": parallel_writes,
    "rotated-mid-burst": rotated,
    "killed-mid-burst": killed,
    "large": large,
}
WITH_OTHER_CRD: dict[str, Callable[..., Awaitable[None]]] = {
    "older-than-a-rule": older_than_a_rule,
    "without-crd-rules": without_crd_rules,
}
"""Scenarios that change the CRD, which all cases share."""


def cases() -> list[Case]:
    """Each scenario for both kinds. Those that change a CRD, and the one whose time is limited, run alone."""
    found: list[Case] = []
    for kind in KINDS:
        for name, scenario in SCENARIOS.items():
            run = partial(run_scenario, kind=kind, scenario=scenario)
            found.append(Case(f"admission/{name}/{kind.plural}", run, alone=scenario is parallel_writes, limit=180))
        for name, with_other_crd in WITH_OTHER_CRD.items():
            found.append(
                Case(f"admission/{name}/{kind.plural}", partial(with_other_crd, kind=kind), alone=True, limit=180)
            )
    return found
