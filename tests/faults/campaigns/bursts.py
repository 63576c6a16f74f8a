"""T9, too: admission under many writes at once, large objects, and objects that are older than a rule."""

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
from faults.registration import Registration, complaint, registered, resource_of, would_be
from faults.stage import NORMAL, Stage, until
from faults.webhook import KINDS, Webhook, pair, webhook
from faults.workloads import IMAGE, custom
from integration.control_plane import CRDS
from memcached_api.kinds import Kind
from memcached_operator.kube.client import JSON_PATCH
from memcached_operator.kube.resource import Key, Object

MANY = 200
"""Writes at once."""
BURST = 60.0
"""Seconds for them, on a very busy machine."""
MEMORY = 192.0
"""MiB that admission may have."""
LONG = "x" * 65_000
RULED = 30.0
"""Seconds until a changed CRD is in effect."""


@dataclass
class Scene:
    """A kind, and admission at work."""

    stage: Stage
    kind: Kind[Any]
    webhook: Webhook
    registration: Registration

    async def create(self, name: str, spec: Object, **metadata: Any) -> Object:
        """Create an object."""
        resource = resource_of(self.kind)
        obj = custom(resource, self.stage.namespace, name, spec)
        obj["metadata"] |= metadata
        return await self.stage.client.request("POST", resource.path(self.stage.namespace), obj)

    def key(self, name: str = VICTIM) -> Key:
        """Of an object."""
        return Key(resource_of(self.kind), self.stage.namespace, name)

    async def merge(self, patch: Object, sub: str = "") -> Object:
        """Merge a patch into the object."""
        return await self.stage.client.patch(self.key(), patch, subresource=sub)

    async def stored(self) -> list[Object]:
        """Every object of the kind."""
        found, _ = await self.stage.client.list(resource_of(self.kind), self.stage.namespace)
        return list(found)

    def looked_at(self, objects: list[Object]) -> None:
        """Each has been filled in, so that admission has seen it."""
        for obj in objects:
            ports = obj["spec"].get("ports", [])
            told = (
                [port.get("name") for port in ports] if self.kind.name == "AppService" else [obj["spec"].get("image")]
            )
            self.stage.holds(told and all(told), f"stored without having been looked at: {obj['spec']}")


def plain(kind: Kind[Any], number: int = 0) -> Object:
    """A good spec that lacks what admission fills in."""
    if kind.name == "Memcached":
        return {"size": 1 + number}
    return {"image": IMAGE, "size": 1 + number, "ports": [{"port": 80}, {"port": 81}]}


async def together(scene: Scene) -> None:
    """200 good objects at once are stored, 200 bad ones refused with the field."""
    started = time.monotonic()
    good = [scene.create(f"good-{number}", plain(scene.kind)) for number in range(MANY)]
    bad = [
        complaint(partial(scene.create, f"bad-{number}", {**plain(scene.kind), "image": "A b"}))
        for number in range(MANY)
    ]
    done, said = await asyncio.gather(asyncio.gather(*good), asyncio.gather(*bad))
    scene.stage.holds(time.monotonic() - started < BURST, "they take too long")
    scene.looked_at(done)
    scene.stage.holds(all("spec.image" in str(each) for each in said), f"a refusal does not tell the field: {said[:1]}")
    scene.stage.holds(len(await scene.stored()) == MANY, "a bad object is there, or a good one is not")
    scene.stage.holds(scene.webhook.rss() < MEMORY, f"admission has {scene.webhook.rss():.0f} MiB")


async def _burst(scene: Scene, meanwhile: Callable[[], Awaitable[None]]) -> list[Object | None]:
    """So many objects, a few at a time, while something happens after each 50; None for each that is refused."""
    turns = asyncio.Semaphore(8)
    count = 0

    async def one(number: int) -> Object | None:
        nonlocal count
        async with turns:
            count += 1
            if count % 50 == 0:
                await meanwhile()
            found: list[Object] = []

            async def work() -> None:
                found.append(await scene.create(f"cache-{number}", plain(scene.kind)))

            said = await complaint(work)
            clear = said is None or "failed calling webhook" in str(said)
            scene.stage.holds(clear, f"refused without clear words: {said}")
            return found[0] if found else None

    return await asyncio.gather(*(one(number) for number in range(MANY)))


async def rotated(scene: Scene) -> None:
    """The certificate is renewed four times during 200 writes, as the leader does it: trusted first, then shown."""
    known = scene.webhook.pair.ca

    async def renew() -> None:
        nonlocal known
        fresh = pair()
        known += fresh.ca
        await scene.registration.trust(scene.webhook.url, known)
        await asyncio.sleep(2)
        scene.webhook.files.hold(fresh)

    done = await _burst(scene, renew)
    scene.stage.holds(all(done), f"{done.count(None)} of {MANY} writes were refused")
    scene.looked_at([each for each in done if each])
    scene.stage.holds(len(scene.webhook.process.began) == 1, "the process was started again")


async def killed(scene: Scene) -> None:
    """The process is killed four times during 200 writes: some are refused, and none is stored unseen."""

    async def kill() -> None:
        scene.webhook.process.kill()

    done = await _burst(scene, kill)
    stored = await scene.stored()
    scene.looked_at(stored)
    scene.stage.holds(len(stored) == sum(each is not None for each in done), "what is stored is not what was accepted")
    await scene.webhook.up()
    scene.looked_at([await scene.create("afterwards", plain(scene.kind))])


async def large(scene: Scene) -> None:
    """Objects as large as can be stored pass; larger ones are refused with words that say so."""
    notes = {"annotations": {"note": "x" * 250_000}}
    scene.looked_at([await scene.create("annotated", plain(scene.kind), **notes)])
    for size, words in ((300_000, "262144"), (2_900_000, "262144"), (3_300_000, "too large")):
        said = await complaint(partial(scene.create, "huge", plain(scene.kind), annotations={"note": "x" * size}))
        scene.stage.holds(words in str(said), f"{size} bytes: {str(said)[:300]}")
    if scene.kind.name == "AppService":
        await _large_spec(scene)
    scene.stage.holds(scene.webhook.rss() < MEMORY, f"admission has {scene.webhook.rss():.0f} MiB")


async def _large_spec(scene: Scene) -> None:
    def envs(count: int) -> Object:
        return {**plain(scene.kind), "envs": [{"name": f"A{number}", "value": LONG} for number in range(count)]}

    await scene.create(VICTIM, envs(20))
    live = await scene.merge({"metadata": {"labels": {"team": "a"}}, "spec": {"size": 2}})
    scene.stage.holds(live["spec"]["size"] == 2, "the change is not there")
    said = await complaint(partial(scene.create, "huge", envs(45)))
    scene.stage.holds("large" in str(said), f"3 MiB at once: {str(said)[:300]}")
    said = await complaint(partial(scene.merge, {"spec": envs(44)}))
    scene.stage.holds("large" in str(said) or "413" in str(said), f"1.3 MiB that grow: {str(said)[:300]}")
    scene.stage.holds(len((await scene.stage.get(scene.key().resource, VICTIM) or {})["spec"]["envs"]) == 20, "grown")
    said = await complaint(partial(would_be, scene.stage, resource_of(scene.kind), {**envs(45), "image": "A b"}))
    scene.stage.holds("spec.image" in str(said), f"a bad one of 3 MiB: {str(said)[:300]}")


@asynccontextmanager
async def without_rules(stage: Stage, kind: Kind[Any]) -> AsyncGenerator[None]:
    """The CRD accepts any spec, as an older one would have."""
    key = Key(CRDS, "", f"{kind.plural}.{kind.group}")
    crd = await stage.client.get(key) or {}
    before, lax = crd["spec"]["versions"], copy.deepcopy(crd["spec"]["versions"])
    for version in lax:
        schema = version["schema"]["openAPIV3Schema"]
        schema.pop("x-kubernetes-validations")
        schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    async def put(versions: list[Object]) -> None:
        await stage.client.patch(key, [{"op": "replace", "path": "/spec/versions", "value": versions}], JSON_PATCH)

    async def lenient() -> bool:
        said = await complaint(lambda: would_be(stage, resource_of(kind), {"size": 0, "image": "A b"}))
        return said is None

    async def strict() -> bool:
        return not await lenient()

    try:
        await put(lax)
        await until(lenient, RULED, "the CRD's rules are gone")
        yield
    finally:
        await put(before)
        await until(strict, RULED, "the CRD's rules hold again")


async def older(stage: Stage, _: References, kind: Kind[Any]) -> None:
    """An object breaks rules that came after it: it may stay as bad as it is, not get worse, be mended and deleted."""
    spec: Object = {**plain(kind), "size": 0, "image": "A b"}
    resource = resource_of(kind)
    async with without_rules(stage, kind):
        for name in (VICTIM, "other"):
            obj = custom(resource, stage.namespace, name, spec)
            obj["metadata"]["finalizers"] = ["example.com/hold"]
            await stage.client.request("POST", resource.path(stage.namespace), obj)
    async with webhook(stage) as here, registered(stage, here.url, here.pair.ca, here) as registration:
        scene = Scene(stage, kind, here, registration)
        stage.operator.start()
        await until(partial(_degraded, scene), NORMAL, "the status tells of the faults")
        await scene.merge({"metadata": {"labels": {"team": "a"}}})
        await scene.merge({"metadata": {"finalizers": None}})
        await scene.merge({"status": {"observedGeneration": 1}}, "status")
        for worse in ({"size": -1}, {"resources": {"limits": {"cpu": "-1"}}}, {"image": "B b"}):
            said = await complaint(partial(scene.merge, {"spec": worse}))
            stage.holds(f"spec.{next(iter(worse))}" in str(said), f"it got worse: {worse}: {said}")
        await scene.merge({"spec": {"size": 1}})
        live = await scene.merge({"spec": {"image": IMAGE}})
        stage.holds(live["spec"]["size"] == 1, "half of the mending is lost")
        await stage.settled(resource, VICTIM)
        await stage.delete(resource, "other")
        await stage.client.patch(scene.key("other"), {"metadata": {"finalizers": None}})
        await stage.gone(resource, "other")
        stage.holds(not here.failures(), f"admission itself: {here.failures()}")


async def _degraded(scene: Scene) -> bool:
    live = await scene.stage.get(scene.key().resource, VICTIM) or {}
    found = {each["type"]: each for each in live.get("status", {}).get("conditions", [])}
    told = found.get("Degraded", {}).get("message", "")
    return all(part in told for part in ("spec.size", "spec.image"))


async def played(stage: Stage, _: References, kind: Kind[Any], play: Callable[[Scene], Awaitable[None]]) -> None:
    """With admission at work."""
    async with webhook(stage) as here, registered(stage, here.url, here.pair.ca, here) as registration:
        await play(Scene(stage, kind, here, registration))
        stage.holds(not here.failures(), f"admission itself: {here.failures()}")


PLAYS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "parallel-200": together,
    "rotated-mid-burst": rotated,
    "killed-mid-burst": killed,
    "large": large,
}


def cases() -> list[Case]:
    """Each for both kinds. What changes a CRD runs alone."""
    found: list[Case] = []
    for kind in KINDS:
        for name, play in PLAYS.items():
            found.append(Case(f"T9/{name}/{kind.plural}", partial(played, kind=kind, play=play), limit=180))
        found.append(Case(f"T9/older-than-a-rule/{kind.plural}", partial(older, kind=kind), alone=True, limit=180))
    return found
