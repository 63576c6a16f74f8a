"""T9: admission is away, late, broken, foreign or untrusted, while users and controllers write."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from faults.case import Case, References
from faults.esr import VICTIM, calm, quiet
from faults.front import Alter, Front, Late, Part, Say, Strike, front, reset
from faults.registration import Registration, complaint, registered, resource_of, would_be
from faults.stage import NORMAL, FailedError, Stage, until
from faults.state import state_of
from faults.webhook import KINDS, Webhook, pair, webhook
from faults.workloads import IMAGE, custom
from memcached_api.kinds import Kind
from memcached_operator.kube.client import APPLY_PATCH, ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object

TIMEOUT = 5.0
"""Seconds after which the API server gives a webhook up (config/webhook/manifests.yaml)."""
PATIENCE = 5.0
"""Seconds that a busy machine may add to that."""
BACK = 20.0
"""Seconds until a write is accepted again: one or two for a certificate to be read, or a configuration to be heard."""
DELAY = 2.0
"""Seconds that a slow webhook takes, for each of its two answers."""
HOLD = "example.com/hold"
BAD: Object = {"size": 0, "image": "no such image"}
GOOD: dict[str, Object] = {
    "Memcached": {"size": 1},
    "AppService": {"image": IMAGE, "ports": [{"port": 80}, {"port": 81}]},
}


@dataclass
class Scene:
    """A kind of object, an admission process, what stands in front of it, and what is wrong."""

    stage: Stage
    kind: Kind[Any]
    trouble: "Problem"
    webhook: Webhook
    registration: Registration
    front: Front | None = None
    facts: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> Object:
        """A spec that lacks what admission fills in."""
        return GOOD[self.kind.name]

    async def create(self, name: str = VICTIM, spec: Object | None = None, **metadata: Any) -> Object:
        """Create an object."""
        resource = resource_of(self.kind)
        obj = custom(resource, self.stage.namespace, name, self.good if spec is None else spec)
        obj["metadata"] |= metadata
        return await self.stage.client.request("POST", resource.path(self.stage.namespace), obj)

    async def apply(self, name: str = VICTIM) -> Object:
        """Server-side apply."""
        resource = resource_of(self.kind)
        obj = custom(resource, self.stage.namespace, name, self.good)
        path, params = resource.path(self.stage.namespace, name), {"fieldManager": "somebody"}
        return await self.stage.client.request("PATCH", path, obj, APPLY_PATCH, params)

    async def merge(self, patch: Object, name: str = VICTIM, sub: str = "") -> Object:
        """Merge a patch into an object, or one of its subresources."""
        key = Key(resource_of(self.kind), self.stage.namespace, name)
        return await self.stage.client.patch(key, patch, subresource=sub)

    async def get(self, name: str = VICTIM) -> Object | None:
        """The object."""
        return await self.stage.get(resource_of(self.kind), name)

    async def tried(self, work: Callable[[], Awaitable[Any]]) -> bool:
        """Whether a good write is carried out. It must be, or be refused, as the trouble says, with clear words."""
        started = time.monotonic()
        said = await complaint(work)
        taken = time.monotonic() - started
        self.stage.holds(taken < TIMEOUT + PATIENCE, f"the answer took {taken:.1f} s")
        if not self.trouble.refuses:
            self.stage.holds(said is None, f"a good write was refused: {said}")
            return True
        self.stage.holds(said is not None, "a write was accepted that nobody had looked at")
        self.clear(said)
        return False

    def clear(self, said: ApiError | None) -> None:
        """A refusal tells the webhook and what is wrong with it."""
        text = str(said)
        whose = ("failed calling webhook", f"m{self.kind.name.lower()}.{self.kind.group}")
        parts = (self.trouble.says, *(whose if self.trouble.named else ()))
        missing = [part for part in parts if part not in text]
        self.stage.holds(not missing, f"the refusal does not tell {missing}: {text}")

    async def accepted(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Once admission is back, a write is accepted, and filled in, without anybody doing anything."""
        found: Any = None

        async def look() -> bool:
            nonlocal found
            try:
                found = await work()
            except ApiError as error:
                self.facts.append(str(error))
                return False
            return True

        await until(look, BACK, f"a write is accepted again; {self.facts[-1:]}")
        return found

    def filled(self, obj: Object) -> None:
        """Admission has been asked about an object that is stored: it has what admission fills in."""
        spec = obj["spec"]
        told = [port.get("name") for port in spec["ports"]] if self.kind.name == "AppService" else [spec.get("image")]
        self.stage.holds(all(told), f"stored without admission's defaults: {spec}")


@dataclass(frozen=True)
class Problem:
    """What is wrong with admission.

    `says`: what a refusal tells of it. `named`: whether it names the webhook, too.
    `fronted`: a server in front does it.
    """

    name: str
    says: str
    begin: Callable[[Scene], Awaitable[None]]
    end: Callable[[Scene], Awaitable[None]]
    refuses: bool = True
    fronted: bool = False
    named: bool = True


def struck(name: str, says: str, strike: Strike, *, refuses: bool = True, named: bool = True) -> Problem:
    """The server in front answers instead."""

    async def begin(scene: Scene) -> None:
        assert scene.front is not None
        scene.front.fault = strike

    async def end(scene: Scene) -> None:
        assert scene.front is not None
        scene.front.fault = None

    return Problem(name, says, begin, end, refuses, fronted=True, named=named)


def shown(name: str, says: str, *names: str, age: timedelta = timedelta()) -> Problem:
    """The process shows a certificate of its CA that is no good; then a good one is put in its place."""

    async def begin(scene: Scene) -> None:
        bad, good = pair(*names, age=age), scene.webhook.pair
        scene.webhook.files.hold(bad)
        await scene.webhook.process.away()
        await scene.webhook.up()
        await scene.registration.trust(scene.webhook.url, bad.ca + good.ca)

    async def end(scene: Scene) -> None:
        scene.webhook.files.hold(scene.webhook.pair)

    return Problem(name, says, begin, end)


def trusted(name: str, says: str, bundle: Callable[[], bytes]) -> Problem:
    """The API server trusts others than it should."""

    async def begin(scene: Scene) -> None:
        await scene.registration.trust(scene.webhook.url, bundle())

    async def end(scene: Scene) -> None:
        await scene.registration.trust(scene.webhook.url, scene.webhook.pair.ca)

    return Problem(name, says, begin, end)


async def _away(scene: Scene) -> None:
    await scene.webhook.process.away()


async def _back(scene: Scene) -> None:
    await scene.webhook.up()


async def _plain(scene: Scene) -> None:
    """Somebody else, without TLS, has its port."""
    async with AsyncExitStack() as stack:
        _, url = await stack.enter_async_context(front(scene.webhook, scene.webhook.pair, plain=True))
        await scene.registration.trust(url, scene.webhook.pair.ca)
        scene.stage.facts["plain"] = stack.pop_all()


async def _tls(scene: Scene) -> None:
    await scene.registration.trust(scene.webhook.url, scene.webhook.pair.ca)
    await scene.stage.facts.pop("plain").aclose()


PATCH_OF_NOTHING = (("patchType", "JSONPatch"), ("patch", "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL25vL3N1Y2gifV0="))
"""Base64 of a patch that removes a field no object has."""

TROUBLES = (
    Problem("down", "connection refused", _away, _back),
    struck("hangs", "deadline exceeded", Late(None)),
    struck("drips", "deadline exceeded", Part(cut=False)),
    struck("slow", "", Late(DELAY / 2), refuses=False),
    struck("error-500", "an error on the server", Say("broken", 500, "text/plain")),
    struck("error-404", "could not find the requested resource", Say("404", 404, "text/plain")),
    struck("bad-json", "json parse error", Say('{"response": {')),
    struck("no-review", "webhook response was absent", Say("{}")),
    struck("empty", "0-length response", Say()),
    struck("html", "json parse error", Say("<html>", content_type="text/html")),
    struck("wrong-uid", "response.uid", Alter((("uid", "of-another"),))),
    struck("no-uid", "response.uid", Alter((("uid", ""),))),
    struck("patch-that-does-not-apply", "operation does not apply", Alter(PATCH_OF_NOTHING), named=False),
    struck("redirects", "connection refused", Say("", 302, location="https://localhost:1/")),
    struck("resets", "EOF", reset),
    struck("cuts", "EOF", Part(cut=True)),
    Problem("plain-http", "HTTP response to HTTPS client", _plain, _tls),
    trusted("wrong-ca", "certificate signed by unknown authority", lambda: pair().ca),
    trusted("no-ca", "certificate signed by unknown authority", lambda: b""),
    shown("expired", "certificate has expired or is not yet valid", age=timedelta(days=2)),
    shown("not-yet-valid", "certificate has expired or is not yet valid", age=timedelta(days=-2)),
    shown("wrong-name", "certificate is valid for elsewhere.example.com, not localhost", "elsewhere.example.com"),
)

Steps = AsyncGenerator[None]
"""An operation in three parts, with a `yield` between them: while all is well, in trouble, and well again."""


async def create(scene: Scene) -> Steps:
    """Somebody creates an object."""
    yield
    done = await scene.tried(scene.create)
    scene.stage.holds(done or await scene.get() is None, "a refused object is there")
    yield
    scene.filled(await (scene.get() if done else scene.accepted(scene.create)) or {})


async def create_bad(scene: Scene) -> Steps:
    """Somebody creates an object that breaks rules."""
    yield
    scene.stage.holds(await complaint(lambda: scene.create(spec=BAD)), "a bad object was accepted")
    scene.stage.holds(await scene.get() is None, "a bad object is there")
    yield

    async def look() -> bool:
        return "spec.size" in str(await complaint(lambda: scene.create(spec=BAD)))

    await until(look, BACK, "the refusal names the field again")
    scene.stage.holds(await scene.get() is None, "a bad object is there")


async def update(scene: Scene) -> Steps:
    """Somebody changes an object."""
    before = await scene.create()
    yield
    patch: Object = {"metadata": {"labels": {"team": "a"}}, "spec": {"size": 3}}
    done = await scene.tried(lambda: scene.merge(patch))
    live = await scene.get() or {}
    stays = live["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    scene.stage.holds(done != stays, f"the object is another one: {live}")
    yield
    live = await scene.accepted(lambda: scene.merge(patch))
    scene.stage.holds(live["spec"]["size"] == 3, "the change is not there")


async def apply(scene: Scene) -> Steps:
    """Somebody applies an object, first to make it, then to change it."""
    yield
    done = await scene.tried(scene.apply)
    scene.stage.holds(done or await scene.get() is None, "a refused object is there")
    yield
    scene.filled(await scene.accepted(scene.apply))


async def dry_run(scene: Scene) -> Steps:
    """Somebody asks what would be stored."""
    ask = partial(would_be, scene.stage, resource_of(scene.kind), scene.good, VICTIM)
    yield
    await scene.tried(ask)
    yield
    scene.filled(await scene.accepted(ask))
    scene.stage.holds(await scene.get() is None, "a dry run stored something")


async def status(scene: Scene) -> Steps:
    """The controller writes a status: nobody asks admission about it."""
    await scene.create()
    yield
    live = await scene.merge({"status": {"observedGeneration": 7, "replicas": 1}}, sub="status")
    scene.stage.holds(live["status"]["observedGeneration"] == 7, "the status is not there")
    yield


async def finalizer(scene: Scene) -> Steps:
    """Somebody lets an object go that is being deleted: a refusal would keep it for ever."""
    await scene.create(finalizers=[HOLD])
    await scene.stage.delete(resource_of(scene.kind), VICTIM)
    yield
    await scene.merge({"metadata": {"finalizers": None}})
    await scene.stage.gone(resource_of(scene.kind), VICTIM)
    yield


async def delete(scene: Scene) -> Steps:
    """Objects are deleted, in each of the three ways."""
    ways = ("Background", "Foreground", "Orphan")
    for way in ways:
        await scene.create(way.lower())
    yield
    for way in ways:
        await scene.stage.delete(resource_of(scene.kind), way.lower(), way)
    for way in ways:
        await scene.stage.gone(resource_of(scene.kind), way.lower())
    yield


async def heal(scene: Scene) -> Steps:
    """The controller goes on with what is stored: a child that somebody deletes is made again."""
    stage, resource = scene.stage, resource_of(scene.kind)
    stage.operator.start()
    await scene.create()
    first = await stage.settled(resource, VICTIM)
    yield
    old = await stage.get(DEPLOYMENTS, VICTIM) or {}
    await stage.delete(DEPLOYMENTS, VICTIM)

    async def again() -> bool:
        new = await stage.get(DEPLOYMENTS, VICTIM)
        return new is not None and new["metadata"]["uid"] != old["metadata"]["uid"]

    await until(again, NORMAL, "the child is made again")
    last = await stage.settled(resource, VICTIM)
    stage.holds(first["spec"] == last["spec"], "the object is another one")

    async def true() -> bool:
        return (await state_of(stage.client, resource, stage.namespace, VICTIM))["nodes are the pods"]

    await until(true, NORMAL, "the status names the new pods")
    await quiet(stage)
    calm(stage)
    yield


async def scale(scene: Scene) -> Steps:
    """`kubectl scale` and autoscalers write a subresource, within the bounds of the CRD."""
    stage, resource = scene.stage, resource_of(scene.kind)
    stage.operator.start()
    await scene.create()
    await stage.settled(resource, VICTIM)
    yield
    said = await complaint(lambda: scene.merge({"spec": {"replicas": 0}}, sub="scale"))
    stage.holds("spec.size" in str(said), f"scaled to 0: {said}")
    await scene.merge({"spec": {"replicas": 2}}, sub="scale")

    async def look() -> bool:
        live = await stage.settled(resource, VICTIM)
        return live["status"]["readyReplicas"] == 2

    await until(look, NORMAL, "there are two pods")
    calm(stage)
    yield


OPERATIONS: dict[str, Callable[[Scene], Steps]] = {
    "create": create,
    "create-bad": create_bad,
    "update": update,
    "apply": apply,
    "dry-run": dry_run,
    "status": status,
    "finalizer": finalizer,
    "delete": delete,
}
CONTROLLED: dict[str, Callable[[Scene], Steps]] = {"heal": heal, "scale": scale}
"""With the controller at work; for troubles of different natures only."""
NATURES = ("down", "hangs", "error-500", "wrong-ca")
GATE = (
    "hangs/create-memcacheds",
    "down/update-appservices",
    "down/heal-memcacheds",
    "down/delete-appservices",
    "wrong-ca/apply-memcacheds",
    "expired/dry-run-appservices",
    "bad-json/create-bad-memcacheds",
    "slow/create-appservices",
)


async def played(
    stage: Stage, _: References, kind: Kind[Any], trouble: Problem, operation: Callable[[Scene], Steps]
) -> None:
    """One operation, with one thing wrong."""
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(webhook(stage))
        before, url = None, here.url
        if trouble.fronted:
            before, url = await stack.enter_async_context(front(here, here.pair))
        registration = await stack.enter_async_context(registered(stage, url, here.pair.ca, here))
        scene = Scene(stage, kind, trouble, here, registration, before)
        steps = operation(scene)
        await anext(steps)
        await trouble.begin(scene)
        if not trouble.fronted:
            await until(lambda: _in_effect(scene), BACK, "the trouble is in effect")
        await anext(steps)
        await trouble.end(scene)
        async for _step in steps:
            raise FailedError("an operation has three parts")
        failures = here.failures()
        stage.holds(not failures, f"admission itself: {failures}")


async def _in_effect(scene: Scene) -> bool:
    said = await complaint(lambda: would_be(scene.stage, resource_of(scene.kind), scene.good))
    return scene.trouble.says in str(said)


def cases() -> list[Case]:
    """Every operation with every trouble, for both kinds."""
    found: list[Case] = []
    for trouble in TROUBLES:
        operations = OPERATIONS | (CONTROLLED if trouble.name in NATURES else {})
        for name, operation in operations.items():
            for kind in KINDS:
                short = f"{trouble.name}/{name}-{kind.plural}"
                play = partial(played, kind=kind, trouble=trouble, operation=operation)
                found.append(Case(f"T9/{short}", play, gate=short in GATE, limit=120))
    return found
