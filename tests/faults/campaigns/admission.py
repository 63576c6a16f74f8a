"""Admission is down, late, broken or untrusted, while users and controllers write.

A case has to exercise our process, our webhook configurations or our controller. Cases do not repeat what the API
server does with every webhook:

* PROBLEMS occur with our process or its certificate. Each is combined with every write that calls admission.
* RESPONSES are broken responses. How the API server denies them does not depend on the write, and most come from
  something other than our process: each is tested with a creation only. It must be denied with the name of the webhook,
  and accepted again without manual action.
* Writes in EXEMPT must not call admission at all (`rules` and `matchConditions`), so one problem shows it: admission is
  down, and any call would be denied. The same holds for the controller (CONTROLLED), which writes only statuses and
  children.
* The API server itself denies an invalid object, with the schema and the rules of the CRD. What our process denies is
  tested with a CRD that has none (bursts.py).
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from faults.admission_proxy import (
    AdmissionFault,
    AdmissionProxy,
    ChangeFields,
    Delay,
    OnlyFor,
    Respond,
    admission_proxy,
    cut,
    reset,
)
from faults.case import Case, References, in_gate
from faults.esr import VICTIM, check_operator, check_quiet
from faults.registration import VALID, Registration, check_defaults, dry_run_create, error_of, registered, resource_of
from faults.sandbox import READY_TIMEOUT, FailedError, Sandbox, wait_until
from faults.state import state_of
from faults.webhook import KINDS, VALIDATE, Webhook, pair, webhook
from faults.workloads import new_object
from memcached_api.kind import Kind
from memcached_operator.kube.client import APPLY_PATCH, ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object

TIMEOUT = 5.0
"""Seconds after which the API server abandons a webhook call (config/webhook/manifests.yaml)."""
SLACK = 5.0
"""Seconds that a busy machine may add."""
RECOVERY = 20.0
"""Seconds until a write is accepted again: a certificate or configuration takes effect within 1 to 2."""
DELAY = 2.0
"""Seconds added by a slow webhook, in total for its two calls."""
HOLD = "example.com/hold"


@dataclass
class Setup:
    """A kind of object, an admission process, an optional proxy in front of it, and the problem."""

    sandbox: Sandbox
    kind: Kind[Any]
    problem: "Problem"
    webhook: Webhook
    registration: Registration
    proxy: AdmissionProxy | None = None
    facts: list[str] = field(default_factory=list[str])

    @property
    def valid(self) -> Object:
        """A valid spec without the fields that admission sets."""
        return VALID[self.kind.name]

    async def create(self, name: str = VICTIM, **metadata: Any) -> Object:
        """Create an object."""
        resource = resource_of(self.kind)
        obj = new_object(resource, self.sandbox.namespace, name, self.valid)
        obj["metadata"] |= metadata
        return await self.sandbox.client.request("POST", resource.path(self.sandbox.namespace), obj)

    async def apply(self, name: str = VICTIM) -> Object:
        """Server-side apply."""
        resource = resource_of(self.kind)
        obj = new_object(resource, self.sandbox.namespace, name, self.valid)
        path, params = resource.path(self.sandbox.namespace, name), {"fieldManager": "test-user"}
        return await self.sandbox.client.request("PATCH", path, obj, APPLY_PATCH, params)

    async def merge(self, patch: Object, name: str = VICTIM, sub: str = "") -> Object:
        """Send a merge patch for an object or its subresource."""
        key = Key(resource_of(self.kind), self.sandbox.namespace, name)
        return await self.sandbox.client.patch(key, patch, subresource=sub)

    async def get(self, name: str = VICTIM) -> Object | None:
        """The object."""
        return await self.sandbox.get(resource_of(self.kind), name)

    async def try_write(self, work: Callable[[], Awaitable[Any]]) -> bool:
        """Whether a valid write is accepted. If the problem denies it, check the message."""
        started = time.monotonic()
        error = await error_of(work)
        taken = time.monotonic() - started
        self.sandbox.check(taken < TIMEOUT + SLACK, f"the response took {taken:.1f} s")
        if not self.problem.denies:
            self.sandbox.check(error is None, f"a valid write was denied: {error}")
            return True
        self.sandbox.check(error is not None, "a write was accepted without a review")
        self.check_message(error)
        return False

    def check_message(self, error: ApiError | None) -> None:
        """Check that a denial names the webhook and the problem."""
        text = str(error)
        names = [f"{self.problem.webhook}{self.kind.name.lower()}.{self.kind.group}", "failed calling webhook"]
        parts = (self.problem.message, *(names if self.problem.webhook else ()))
        missing = [part for part in parts if part not in text]
        self.sandbox.check(not missing, f"the denial does not contain {missing}: {text}")

    async def wait_until_accepted(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until a write is accepted without manual action."""
        found: Any = None

        async def poll() -> bool:
            nonlocal found
            try:
                found = await work()
            except ApiError as error:
                self.facts.append(str(error))
                return False
            return True

        await wait_until(poll, RECOVERY, f"a write is accepted again; {self.facts[-1:]}")
        return found


@dataclass(frozen=True)
class Problem:
    """A problem of admission.

    `message`: what a denial contains. `webhook`: the first letter of the webhook that a denial also names, `m` for the
    mutating and `v` for the validating one; empty if it names none. `proxied`: a proxy causes the problem.
    """

    name: str
    message: str
    begin: Callable[[Setup], Awaitable[None]]
    end: Callable[[Setup], Awaitable[None]]
    denies: bool = True
    proxied: bool = False
    webhook: str = "m"


def faulty_response(
    name: str, message: str, fault: AdmissionFault, *, denies: bool = True, webhook: str = "m"
) -> Problem:
    """The proxy responds instead of the admission process."""

    async def begin(setup: Setup) -> None:
        assert setup.proxy is not None
        setup.proxy.fault = fault

    async def end(setup: Setup) -> None:
        assert setup.proxy is not None
        setup.proxy.fault = None

    return Problem(name, message, begin, end, denies, proxied=True, webhook=webhook)


def bad_certificate(name: str, message: str, *names: str, age: timedelta = timedelta()) -> Problem:
    """The process serves an invalid certificate of a trusted CA; then the files get a valid one."""

    async def begin(setup: Setup) -> None:
        invalid, valid = pair(*names, age=age), setup.webhook.pair
        setup.webhook.files.write_pair(invalid)
        await setup.webhook.process.stop()
        await setup.webhook.start()
        await setup.registration.set_client_config(setup.webhook.url, invalid.ca + valid.ca)

    async def end(setup: Setup) -> None:
        setup.webhook.files.write_pair(setup.webhook.pair)

    return Problem(name, message, begin, end)


def wrong_bundle(name: str, message: str, bundle: Callable[[], bytes]) -> Problem:
    """The API server trusts other CAs."""

    async def begin(setup: Setup) -> None:
        await setup.registration.set_client_config(setup.webhook.url, bundle())

    async def end(setup: Setup) -> None:
        await setup.registration.set_client_config(setup.webhook.url, setup.webhook.pair.ca)

    return Problem(name, message, begin, end)


async def _stop(setup: Setup) -> None:
    await setup.webhook.process.stop()


async def _start(setup: Setup) -> None:
    await setup.webhook.start()


INAPPLICABLE_PATCH = (("patchType", "JSONPatch"), ("patch", "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL25vL3N1Y2gifV0="))
"""Base64 of a JSON patch that removes a field that does not exist."""

DOWN = Problem("down", "connection refused", _stop, _start)
PROBLEMS = (
    DOWN,
    faulty_response("hangs", "deadline exceeded", Delay(None)),
    faulty_response("slow", "", Delay(DELAY / 2), denies=False),
    wrong_bundle("wrong-ca", "certificate signed by unknown authority", lambda: pair().ca),
    wrong_bundle("no-ca", "certificate signed by unknown authority", lambda: b""),
    bad_certificate("expired", "certificate has expired or is not yet valid", age=timedelta(days=2)),
    bad_certificate(
        "wrong-name", "certificate is valid for elsewhere.example.com, not localhost", "elsewhere.example.com"
    ),
)
RESPONSES = (
    faulty_response("error-500", "an error on the server", Respond("broken", 500, "text/plain")),
    faulty_response("error-404", "could not find the requested resource", Respond("404", 404, "text/plain")),
    faulty_response("bad-json", "json parse error", Respond('{"response": {')),
    faulty_response("no-review", "webhook response was absent", Respond("{}")),
    faulty_response("empty", "0-length response", Respond()),
    faulty_response("wrong-uid", "response.uid", ChangeFields((("uid", "of-another"),))),
    faulty_response(
        "patch-that-does-not-apply", "operation does not apply", ChangeFields(INAPPLICABLE_PATCH), webhook=""
    ),
    faulty_response("validate-500", "an error on the server", OnlyFor(VALIDATE, Respond("broken", 500)), webhook="v"),
    faulty_response("validate-hangs", "deadline exceeded", OnlyFor(VALIDATE, Delay(None)), webhook="v"),
    faulty_response("resets", "EOF", reset),
    faulty_response("cuts", "EOF", cut),
    bad_certificate("not-yet-valid", "certificate has expired or is not yet valid", age=timedelta(days=-2)),
)

Steps = AsyncGenerator[None]
"""An operation in three parts, separated by `yield`: before, during and after the problem."""


async def create(setup: Setup) -> Steps:
    """A user creates an object."""
    yield
    accepted = await setup.try_write(setup.create)
    setup.sandbox.check(accepted or await setup.get() is None, "a denied object exists")
    yield
    check_defaults(setup.sandbox, await (setup.get() if accepted else setup.wait_until_accepted(setup.create)) or {})


async def update(setup: Setup) -> Steps:
    """A user changes an object."""
    before = await setup.create()
    yield
    patch: Object = {"metadata": {"labels": {"team": "a"}}, "spec": {"size": 3}}
    accepted = await setup.try_write(lambda: setup.merge(patch))
    live = await setup.get() or {}
    unchanged = live["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    setup.sandbox.check(accepted != unchanged, f"the object is not as expected: {live}")
    yield
    live = await setup.wait_until_accepted(lambda: setup.merge(patch))
    setup.sandbox.check(live["spec"]["size"] == 3, "the change was not stored")


async def apply(setup: Setup) -> Steps:
    """A user applies an object: the first time it is created, then changed."""
    yield
    accepted = await setup.try_write(setup.apply)
    setup.sandbox.check(accepted or await setup.get() is None, "a denied object exists")
    yield
    check_defaults(setup.sandbox, await setup.wait_until_accepted(setup.apply))


async def dry_run(setup: Setup) -> Steps:
    """A user creates an object with dryRun."""
    request = partial(dry_run_create, setup.sandbox, resource_of(setup.kind), setup.valid, VICTIM)
    yield
    await setup.try_write(request)
    yield
    check_defaults(setup.sandbox, await setup.wait_until_accepted(request))
    setup.sandbox.check(await setup.get() is None, "a dry run stored something")


async def status(setup: Setup) -> Steps:
    """The controller writes a status: admission is not called."""
    await setup.create()
    yield
    live = await setup.merge({"status": {"observedGeneration": 7, "replicas": 1}}, sub="status")
    setup.sandbox.check(live["status"]["observedGeneration"] == 7, "the status was not stored")
    yield


async def finalizer(setup: Setup) -> Steps:
    """A user removes a finalizer of an object that is being deleted: a denial would block the deletion."""
    await setup.create(finalizers=[HOLD])
    await setup.sandbox.delete(resource_of(setup.kind), VICTIM)
    yield
    await setup.merge({"metadata": {"finalizers": None}})
    await setup.sandbox.wait_deleted(resource_of(setup.kind), VICTIM)
    yield


async def delete(setup: Setup) -> Steps:
    """Objects are deleted, with each propagation policy."""
    ways = ("Background", "Foreground", "Orphan")
    for way in ways:
        await setup.create(way.lower())
    yield
    for way in ways:
        await setup.sandbox.delete(resource_of(setup.kind), way.lower(), way)
    for way in ways:
        await setup.sandbox.wait_deleted(resource_of(setup.kind), way.lower())
    yield


async def heal(setup: Setup) -> Steps:
    """The controller keeps reconciling stored objects: a deleted child is created again."""
    sandbox, resource = setup.sandbox, resource_of(setup.kind)
    sandbox.operator.start()
    await setup.create()
    first = await sandbox.wait_ready(resource, VICTIM)
    yield
    old = await sandbox.get(DEPLOYMENTS, VICTIM) or {}
    await sandbox.delete(DEPLOYMENTS, VICTIM)

    async def recreated() -> bool:
        new = await sandbox.get(DEPLOYMENTS, VICTIM)
        return new is not None and new["metadata"]["uid"] != old["metadata"]["uid"]

    await wait_until(recreated, READY_TIMEOUT, "the child is created again")
    last = await sandbox.wait_ready(resource, VICTIM)
    sandbox.check(first["spec"] == last["spec"], "the spec has changed")

    async def nodes_current() -> bool:
        return (await state_of(sandbox.client, resource, sandbox.namespace, VICTIM))["nodes are the pods"]

    await wait_until(nodes_current, READY_TIMEOUT, "the status names the new pods")
    await check_quiet(sandbox)
    check_operator(sandbox)
    yield


async def scale(setup: Setup) -> Steps:
    """`kubectl scale` and autoscalers write a subresource, within the bounds of the CRD."""
    sandbox, resource = setup.sandbox, resource_of(setup.kind)
    sandbox.operator.start()
    await setup.create()
    await sandbox.wait_ready(resource, VICTIM)
    yield
    error = await error_of(lambda: setup.merge({"spec": {"replicas": 0}}, sub="scale"))
    sandbox.check("spec.size" in str(error), f"scaling to 0 was not denied: {error}")
    await setup.merge({"spec": {"replicas": 2}}, sub="scale")

    async def poll() -> bool:
        live = await sandbox.wait_ready(resource, VICTIM)
        return live["status"]["readyReplicas"] == 2

    await wait_until(poll, READY_TIMEOUT, "two pods are ready")
    check_operator(sandbox)
    yield


Operations = Mapping[str, Callable[[Setup], Steps]]
OPERATIONS: Operations = {"create": create, "update": update, "apply": apply, "dry-run": dry_run}
EXEMPT: Operations = {"status": status, "finalizer": finalizer, "delete": delete}
"""Operations that do not call admission."""
CONTROLLED: Operations = {"heal": heal, "scale": scale}
"""Operations with the controller."""


async def run_operation(
    sandbox: Sandbox, _: References, kind: Kind[Any], problem: Problem, operation: Callable[[Setup], Steps]
) -> None:
    """One operation with one problem."""
    async with AsyncExitStack() as stack:
        admission = await stack.enter_async_context(webhook(sandbox))
        proxy, url = None, admission.url
        if problem.proxied:
            proxy, url = await stack.enter_async_context(admission_proxy(admission, admission.pair))
        registration = await stack.enter_async_context(registered(sandbox, url, admission.pair.ca, admission))
        setup = Setup(sandbox, kind, problem, admission, registration, proxy)
        steps = operation(setup)
        await anext(steps)
        await problem.begin(setup)
        if not problem.proxied:
            await wait_until(lambda: _in_effect(setup), RECOVERY, "the problem is in effect")
        await anext(steps)
        await problem.end(setup)
        async for _step in steps:
            raise FailedError("an operation has three parts")
        failures = admission.failures()
        sandbox.check(not failures, f"the admission process failed: {failures}")


async def _in_effect(setup: Setup) -> bool:
    error = await error_of(lambda: dry_run_create(setup.sandbox, resource_of(setup.kind), setup.valid))
    return setup.problem.message in str(error)


def combinations() -> Iterator[tuple[Problem, Operations]]:
    """Each problem with the operations that it is combined with."""
    for problem in PROBLEMS:
        yield problem, OPERATIONS
    yield DOWN, {**EXEMPT, **CONTROLLED}
    for problem in RESPONSES:
        yield problem, {"create": create}


def cases() -> list[Case]:
    """All combinations, for both kinds."""
    found: list[Case] = []
    for problem, operations in combinations():
        for name, operation in operations.items():
            for kind in KINDS:
                short = f"{problem.name}/{name}-{kind.plural}"
                run = partial(run_operation, kind=kind, problem=problem, operation=operation)
                found.append(Case(f"admission/{short}", run, limit=120))
    return in_gate(
        found,
        "admission/hangs/create-memcacheds",
        "admission/wrong-ca/apply-memcacheds",
        "admission/down/create-memcacheds",
        "admission/down/delete-appservices",
        "admission/down/heal-memcacheds",
    )
