"""T13: soak. Many objects, changes and faults by chance for a long time: nothing may pile up, and all ends well."""

import asyncio
import os
import random
import signal
import time
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

import msgspec

from faults.case import Case, References
from faults.esr import calm, quiet
from faults.faulty import Delay, Exchange, FieldError, Lose, Refuse, Reset, event, status
from faults.process import ROOT, Operator, kept
from faults.rules import Rule
from faults.stage import FailedError, Stage, until
from faults.state import settled
from faults.workloads import IMAGE, OTHER_IMAGE, PORTS
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.labels import INSTANCE
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

FIGURES = ROOT / "build/faults/soak.json"
PERIOD = 5.0
"""Seconds between samples."""
CUT_PERIOD = 20.0
"""Seconds between losses of a watch."""
MAKING = 8
"""Objects made at the same time."""
ALL_SETTLE = 300.0
"""Seconds for all objects to settle, on a busy machine."""
SLOPE = 2.0
"""MiB per hour that the memory may grow at most."""
SPARE = 3
"""Tasks, and descriptors, by which the last third of a run may differ from the first: requests come and go."""
MIB = 2**20
PAGE = os.sysconf("SC_PAGE_SIZE")
GONE = (404, 409)
"""What a user is told whose child is not there, or not any more."""


@dataclass(frozen=True)
class Length:
    """How long, in seconds, and with how many objects; before `warm_up` is over nothing is measured."""

    objects: int
    warm_up: float
    seconds: float
    share: float = 0.05
    pace: float = 1.0


@dataclass(frozen=True)
class Sample:
    """What the process has: at a time of the monotonic clock, bytes of resident memory, descriptors, tasks."""

    at: float
    memory: int
    files: int
    tasks: int


@dataclass(frozen=True)
class OneOf:
    """Any of some faults, by chance."""

    faults: tuple[FieldError, ...]

    async def __call__(self, exchange: Exchange) -> Any:
        return await random.choice(self.faults)(exchange)  # noqa: S311 - chance, not a secret


CHAOS = OneOf(
    (
        Refuse(409, "Conflict"),
        Refuse(429, "TooManyRequests", retry_after=1),
        Refuse(500, "InternalError"),
        Refuse(503, "ServiceUnavailable"),
        Refuse(504, "Timeout"),
        Reset(),
        Lose(),
        Lose(504),
        Delay(2.0),
    )
)
LOST_PLACE = event("ERROR", status(410, "Expired"))


@dataclass
class Users:
    """What users do: one thing after the other, to any of the objects."""

    stage: Stage
    count: int
    chance: random.Random
    done: int = 0
    specs: dict[tuple[Resource, str], Object] = field(default_factory=dict[tuple[Resource, str], Object])

    async def begin(self) -> None:
        """Make the objects, of both kinds, several at a time."""
        for number in range(self.count):
            resource = (MEMCACHEDS, APPSERVICES)[number % 2]
            ports = PORTS if number % 4 == 1 else {}
            self.specs[resource, f"soak-{number}"] = {"image": IMAGE, "size": 1 + number % 3, **ports}
        lanes = asyncio.Semaphore(MAKING)

        async def make(resource: Resource, name: str, spec: Object) -> None:
            async with lanes:
                await self.stage.create(resource, name, spec)

        await asyncio.gather(*(make(*key, spec) for key, spec in self.specs.items()))

    async def go_on(self, pace: float) -> None:
        """Change something every `pace` seconds, for ever."""
        acts = (self.resize, self.resize, self.other_image, self.other_field, self.lose, self.scale, self.relabel)
        started = time.monotonic()
        while True:
            self.done += 1
            await asyncio.sleep(max(0.0, started + self.done * pace - time.monotonic()))
            resource, name = self.chance.choice(list(self.specs))
            act = self.again if self.done % 10 == 0 else self.chance.choice(acts)
            try:
                await act(resource, name)
            except ApiError as error:
                if error.code not in GONE:
                    raise

    async def resize(self, resource: Resource, name: str) -> None:
        """Another number of pods."""
        await self._change(resource, name, {"size": self.chance.randint(1, 3)})

    async def other_image(self, resource: Resource, name: str) -> None:
        """Another image."""
        await self._change(resource, name, {"image": self.chance.choice((IMAGE, OTHER_IMAGE))})

    async def other_field(self, resource: Resource, name: str) -> None:
        """Other memory, or ports or none."""
        if resource == MEMCACHEDS:
            await self._change(resource, name, {"cache": {"memory": self.chance.choice(("64Mi", "128Mi"))}})
        else:
            await self._change(resource, name, {"ports": self.chance.choice((PORTS["ports"], None))})

    async def lose(self, _: Resource, name: str) -> None:
        """A child is deleted."""
        await self.stage.delete(self.chance.choice((DEPLOYMENTS, SERVICES)), name)

    async def scale(self, _: Resource, name: str) -> None:
        """A Deployment is scaled by hand."""
        await self._merge(DEPLOYMENTS, name, {"spec": {"replicas": self.chance.randint(0, 4)}})

    async def relabel(self, _: Resource, name: str) -> None:
        """A child gets a label of ours changed, and one of somebody else's."""
        labels = {"app.kubernetes.io/managed-by": "somebody", "example.com/note": f"{self.done}"}
        await self._merge(DEPLOYMENTS, name, {"metadata": {"labels": labels}})

    async def again(self, resource: Resource, name: str) -> None:
        """The object is deleted, and made again at once."""
        await self.stage.delete(resource, name)
        await self.stage.create(resource, name, self.specs[resource, name])

    async def _change(self, resource: Resource, name: str, changes: Object) -> None:
        spec = {**self.specs[resource, name], **changes}
        self.specs[resource, name] = {field: value for field, value in spec.items() if value is not None}
        await self._merge(resource, name, {"spec": changes})

    async def _merge(self, resource: Resource, name: str, patch: Object) -> None:
        await self.stage.merge(Key(resource, self.stage.namespace, name), patch)


async def soaked(stage: Stage, references: References, length: Length) -> None:
    """The whole of it."""
    tasks = references.plane.directory / f"{stage.namespace}.tasks"
    settings = replace(stage.settings, environment={"FAULTS_TASKS": str(tasks)})
    async with kept(references.plane.operator(stage.namespace, stage.address, settings, "soaked")) as operator:
        stage.operator, stage.proxy.kill = operator, operator.kill
        operator.start()
        await stage.watching()
        users = Users(stage, length.objects, random.Random(13))  # noqa: S311 - the same each time
        await users.begin()
        await all_well(users)
        samples = await _busy(users, length, tasks)
        await all_well(users)
        await quiet(stage)
        calm(stage)
        _judge(samples, users, length)


async def _busy(users: Users, length: Length, tasks: Path) -> list[Sample]:
    """The time of changes and faults; what was measured in it."""
    stage = users.stage
    samples: list[Sample] = []
    (armed,) = stage.proxy.arm(Rule("*", CHAOS, share=length.share))
    work = (users.go_on(length.pace), cut_watches(stage), measure(stage.operator, tasks, samples))
    running = [asyncio.create_task(each) for each in work]
    await asyncio.wait(running, timeout=length.warm_up + length.seconds, return_when=asyncio.FIRST_COMPLETED)
    armed.lift()
    for task in running:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return [sample for sample in samples if sample.at >= samples[0].at + length.warm_up]


async def cut_watches(stage: Stage) -> None:
    """One watch after the other ends: cut, closed, or told that its place is lost."""
    while True:
        for said, cut in ((b"", True), (b"", False), (LOST_PLACE, False)):
            await asyncio.sleep(CUT_PERIOD)
            streams = stage.proxy.open_watches()
            if streams:
                await random.choice(streams).interrupt(said, cut=cut)  # noqa: S311 - chance, not a secret


async def measure(operator: Operator, tasks: Path, samples: list[Sample]) -> None:
    """Take samples, for ever. The process counts its tasks itself, when it is asked to by a signal."""
    while True:
        operator.signal(signal.SIGUSR2)
        await asyncio.sleep(PERIOD)
        here = Path("/proc", str(operator.pid))
        samples.append(_sample(here, tasks))


def _sample(here: Path, tasks: Path) -> Sample:
    memory = int((here / "statm").read_text().split()[1]) * PAGE
    files = len(list((here / "fd").iterdir()))
    return Sample(time.monotonic(), memory, files, int(tasks.read_text().split()[-1]))


async def all_well(users: Users) -> None:
    """Wait until every object is settled, and its children are what its spec says; no child is left over."""
    last = ""

    async def look() -> bool:
        nonlocal last
        last = await _first_fault(users)
        return not last

    try:
        await until(look, ALL_SETTLE, "")
    except FailedError as error:
        raise FailedError(f"not all is well within {ALL_SETTLE:g} s: {last}") from error


async def _first_fault(users: Users) -> str:
    stage = users.stage
    deployments, services = [await _by_name(stage, each) for each in (DEPLOYMENTS, SERVICES)]
    objects = {each: await _by_name(stage, each) for each in (MEMCACHEDS, APPSERVICES)}
    nodes = await _pods(stage)
    for (resource, name), spec in users.specs.items():
        obj, child = objects[resource].get(name), deployments.pop(name, None)
        if not settled(obj) or obj is None or child is None:
            return f"{resource.kind} {name} is not settled"
        pod = child["spec"]["template"]["spec"]
        if (child["spec"]["replicas"], pod["containers"][0]["image"]) != (spec["size"], spec["image"]):
            return f"Deployment {name} is not as {resource.kind} {name} says"
        served = services.pop(name, None) is not None
        if served != (resource == MEMCACHEDS or "ports" in spec):
            return f"Service {name} is {'there' if served else 'not there'}"
        if obj["status"]["nodes"] != sorted(nodes.get(name, ())):
            return f"{resource.kind} {name} tells of other pods than there are"
    return f"{next(iter({**deployments, **services}))} is left over" if deployments or services else ""


async def _pods(stage: Stage) -> dict[str, list[str]]:
    """Names of the live pods, by the object they are of."""
    found: dict[str, list[str]] = {}
    items, _ = await stage.client.list(PODS, stage.namespace)
    for item in items:
        if not item["metadata"].get("deletionTimestamp"):
            found.setdefault(item["metadata"]["labels"][INSTANCE], []).append(item["metadata"]["name"])
    return found


async def _by_name(stage: Stage, resource: Resource) -> dict[str, Object]:
    items, _ = await stage.client.list(resource, stage.namespace)
    return {item["metadata"]["name"]: item for item in items if item["metadata"]["name"].startswith("soak-")}


def _judge(samples: list[Sample], users: Users, length: Length) -> None:
    """Write the figures down, and compare them with what is allowed."""
    entries = users.stage.proxy.journal.entries
    thirds = samples[: len(samples) // 3], samples[-(len(samples) // 3) :]
    files, tasks = ([median(getattr(each, what) for each in third) for third in thirds] for what in ("files", "tasks"))
    slope = slope_of(samples)
    figures = {
        "length": asdict(length),
        "changes": users.done,
        "requests": len(entries),
        "struck": sum(entry.struck for entry in entries),
        "memory MiB": [round(ends / MIB, 2) for ends in (samples[0].memory, samples[-1].memory)],
        "slope MiB/h": round(slope, 2),
        "files": files,
        "tasks": tasks,
        "samples": [asdict(sample) for sample in samples],
    }
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_bytes(msgspec.json.encode(figures))
    print({name: figure for name, figure in figures.items() if name != "samples"}, flush=True)
    stage = users.stage
    for what, (first, last) in (("file descriptors", files), ("tasks", tasks)):
        stage.holds(abs(last - first) <= SPARE, f"{what}: {first:g} in the first third, {last:g} in the last")
    if length.seconds >= 600:
        stage.holds(slope < SLOPE, f"the memory grows by {slope:.2f} MiB per hour, the limit is {SLOPE:g}")


def slope_of(samples: list[Sample]) -> float:
    """MiB per hour: the line of least squares through all samples."""
    return linear_regression([each.at for each in samples], [each.memory for each in samples]).slope * 3600 / MIB


LONG = Length(objects=200, warm_up=600, seconds=1800)
SHORT = Length(objects=20, warm_up=15, seconds=45)


def cases() -> list[Case]:
    """The soak, and a short one, which is about the rest than memory."""
    return [
        Case("T13/soak", partial(soaked, length=LONG), alone=True, relist=60, retry=10, limit=3600),
        Case("T13/short", partial(soaked, length=SHORT), relist=10, retry=5, limit=400),
    ]
