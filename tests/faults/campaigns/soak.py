"""Many objects with random changes and faults for a long time: nothing may leak, all objects end ready."""

import asyncio
import os
import random
import signal
import time
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

import msgspec

from faults.case import Case, References
from faults.esr import check_operator, check_quiet
from faults.faulty import Delay, Exchange, Fault, LoseReply, Reject, Reset, event, status
from faults.process import ROOT, Operator, supervised
from faults.rules import Rule
from faults.sandbox import FailedError, Sandbox, wait_until
from faults.state import is_ready
from faults.workloads import IMAGE, OTHER_IMAGE, PORTS
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.labels import INSTANCE
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from pages.figures import UNRELEASED, digest, measured
from support.lists import listed

FIGURES = ROOT / "build/faults/soak.json"
RESULTS, PUBLISHED = ROOT / "build/soak-results.json", ROOT / "docs/soak-results.json"
"""What the last long test measured, and what docs/reliability.md says."""
PERIOD = 5.0
"""Seconds between samples."""
CUT_PERIOD = 20.0
"""Seconds between interruptions of a watch."""
PARALLEL = 8
"""Objects that are created in parallel."""
ALL_READY_TIMEOUT = 300.0
"""Seconds until all objects are ready, on a busy machine."""
MAX_SLOPE = 2.0
"""Maximum growth of the memory, in MiB per hour."""
TOLERANCE = 3
"""Maximum difference of tasks and descriptors between first and last third of a run, because of current requests."""
MIB = 2**20
PAGE = os.sysconf("SC_PAGE_SIZE")
MISSING = (404, 409)
"""Codes that a user gets if a child does not exist, or no longer, or changes at the same moment."""


class Published(msgspec.Struct, frozen=True):
    """The figures of a long test, with the digest of its sources, and the date. `release`: theirs, or UNRELEASED."""

    sources: str
    date: str
    figures: str
    release: str = UNRELEASED


@dataclass(frozen=True)
class Length:
    """Number of objects, and duration in seconds. Nothing is measured during `warm_up`.

    `share`: the probability of a fault per request. `pace`: seconds between changes.
    """

    objects: int
    warm_up: float
    seconds: float
    share: float = 0.05
    pace: float = 1.0


@dataclass(frozen=True)
class Sample:
    """A measurement: monotonic time in seconds, resident memory in bytes, file descriptors, asyncio tasks."""

    at: float
    memory: int
    files: int
    tasks: int


@dataclass(frozen=True)
class OneOf:
    """A random one of several faults."""

    faults: tuple[Fault, ...]

    async def __call__(self, exchange: Exchange) -> Any:
        return await random.choice(self.faults)(exchange)  # noqa: S311 - not a secret


CHAOS = OneOf(
    (
        Reject(409, "Conflict"),
        Reject(429, "TooManyRequests", retry_after=1),
        Reject(500, "InternalError"),
        Reject(503, "ServiceUnavailable"),
        Reject(504, "Timeout"),
        Reset(),
        LoseReply(),
        LoseReply(504),
        Delay(2.0),
    )
)
EXPIRED = event("ERROR", status(410, "Expired"))


@dataclass
class Users:
    """Performs random user actions on the objects, one after the other.

    `missed`: actions on a child that did not exist, or changed at the same moment.
    """

    sandbox: Sandbox
    count: int
    rng: random.Random
    done: int = 0
    missed: int = 0
    specs: dict[tuple[Resource, str], Object] = field(default_factory=dict[tuple[Resource, str], Object])

    async def create_all(self) -> None:
        """Create the objects of both kinds, several in parallel."""
        for number in range(self.count):
            resource = (MEMCACHEDS, APPSERVICES)[number % 2]
            ports = PORTS if number % 4 == 1 else {}
            self.specs[resource, f"soak-{number}"] = {"image": IMAGE, "size": 1 + number % 3, **ports}
        slots = asyncio.Semaphore(PARALLEL)

        async def make(resource: Resource, name: str, spec: Object) -> None:
            async with slots:
                await self.sandbox.create(resource, name, spec)

        await asyncio.gather(*(make(*key, spec) for key, spec in self.specs.items()))

    async def run(self, pace: float) -> None:
        """Change something every `pace` seconds, until cancelled."""
        on_children = (self.delete_child, self.scale, self.relabel)
        actions = (self.resize, self.resize, self.other_image, self.other_field, *on_children)
        started = time.monotonic()
        while True:
            self.done += 1
            await asyncio.sleep(max(0.0, started + self.done * pace - time.monotonic()))
            resource, name = self.rng.choice(list(self.specs))
            action = self.recreate if self.done % 10 == 0 else self.rng.choice(actions)
            try:
                await action(resource, name)
            except ApiError as error:
                if action not in on_children or error.code not in MISSING:
                    raise
                self.missed += 1

    async def resize(self, resource: Resource, name: str) -> None:
        """Change the number of pods."""
        await self._change(resource, name, {"size": self.rng.randint(1, 3)})

    async def other_image(self, resource: Resource, name: str) -> None:
        """Change the image."""
        await self._change(resource, name, {"image": self.rng.choice((IMAGE, OTHER_IMAGE))})

    async def other_field(self, resource: Resource, name: str) -> None:
        """Change the memory, or add or remove ports."""
        if resource == MEMCACHEDS:
            await self._change(resource, name, {"cache": {"memory": self.rng.choice(("64Mi", "128Mi"))}})
        else:
            await self._change(resource, name, {"ports": self.rng.choice((PORTS["ports"], None))})

    async def delete_child(self, _: Resource, name: str) -> None:
        """Delete a child."""
        await self.sandbox.delete(self.rng.choice((DEPLOYMENTS, SERVICES)), name)

    async def scale(self, _: Resource, name: str) -> None:
        """Scale a Deployment manually."""
        await self._merge(DEPLOYMENTS, name, {"spec": {"replicas": self.rng.randint(0, 4)}})

    async def relabel(self, _: Resource, name: str) -> None:
        """Change one of our labels of a child, and add another one."""
        labels = {"app.kubernetes.io/managed-by": "another", "example.com/note": f"{self.done}"}
        await self._merge(DEPLOYMENTS, name, {"metadata": {"labels": labels}})

    async def recreate(self, resource: Resource, name: str) -> None:
        """Delete the object and create it again immediately."""
        await self.sandbox.delete(resource, name)
        await self.sandbox.create(resource, name, self.specs[resource, name])

    async def _change(self, resource: Resource, name: str, changes: Object) -> None:
        spec = {**self.specs[resource, name], **changes}
        self.specs[resource, name] = {field: value for field, value in spec.items() if value is not None}
        await self._merge(resource, name, {"spec": changes})

    async def _merge(self, resource: Resource, name: str, patch: Object) -> None:
        await self.sandbox.merge(Key(resource, self.sandbox.namespace, name), patch)


async def run_soak(sandbox: Sandbox, references: References, length: Length) -> str:
    """The whole soak test. Returns its figures."""
    tasks = references.plane.directory / f"{sandbox.namespace}.tasks"
    settings = replace(sandbox.settings, environment={"FAULTS_TASKS": str(tasks)})
    async with supervised(
        references.plane.operator(sandbox.namespace, sandbox.address, settings, "soaked")
    ) as operator:
        sandbox.operator, sandbox.proxy.kill = operator, operator.kill
        operator.start()
        await sandbox.wait_watching()
        users = Users(sandbox, length.objects, random.Random(13))  # noqa: S311 - the same each time
        await users.create_all()
        await wait_all_ready(users)
        samples = await _run_with_faults(users, length, tasks)
        await wait_all_ready(users)
        await check_quiet(sandbox)
        check_operator(sandbox)
        return _recorded(_check(samples, users, length), length)


def block() -> str:
    """The generated block of docs/reliability.md."""
    found = msgspec.json.decode(PUBLISHED.read_bytes(), type=Published)
    return f"{measured(found.sources, found.date, found.release)} {found.figures}."


def _recorded(figures: str, length: Length) -> str:
    """The figures. Those of the long test are written to RESULTS."""
    if length == LONG:
        found = Published(digest("soak"), f"{datetime.now(UTC):%Y-%m-%d}", figures)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return figures


async def _run_with_faults(users: Users, length: Length, tasks: Path) -> list[Sample]:
    """Run changes and faults; returns the samples after the warm-up."""
    sandbox = users.sandbox
    samples: list[Sample] = []
    (active,) = sandbox.proxy.inject(Rule("*", CHAOS, share=length.share))
    work = (users.run(length.pace), cut_watches(sandbox), measure(sandbox.operator, tasks, samples))
    running = [asyncio.create_task(each) for each in work]
    seconds = length.warm_up + length.seconds
    try:
        ended, _ = await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
            raise FailedError("work in the background of the soak test ended early")
    finally:
        active.stop()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return [sample for sample in samples if sample.at >= samples[0].at + length.warm_up]


async def cut_watches(sandbox: Sandbox) -> None:
    """Interrupt watches periodically: cut, closed, or expired."""
    while True:
        for data, cut in ((b"", True), (b"", False), (EXPIRED, False)):
            await asyncio.sleep(CUT_PERIOD)
            streams = sandbox.proxy.open_watches()
            if streams:
                await random.choice(streams).interrupt(data, cut=cut)  # noqa: S311 - not a secret


async def measure(operator: Operator, tasks: Path, samples: list[Sample]) -> None:
    """Take samples, until cancelled. The process counts its tasks when it receives a signal."""
    while True:
        operator.signal(signal.SIGUSR2)
        await asyncio.sleep(PERIOD)
        directory = Path("/proc", str(operator.pid))
        samples.append(_sample(directory, tasks))


def _sample(directory: Path, tasks: Path) -> Sample:
    memory = int((directory / "statm").read_text().split()[1]) * PAGE
    files = len(list((directory / "fd").iterdir()))
    return Sample(time.monotonic(), memory, files, int(tasks.read_text().split()[-1]))


async def wait_all_ready(users: Users) -> None:
    """Wait until every object is ready, its children match its spec, and no other child exists."""
    last = ""

    async def poll() -> bool:
        nonlocal last
        last = await _first_problem(users)
        return not last

    await wait_until(poll, ALL_READY_TIMEOUT, lambda: f"after {ALL_READY_TIMEOUT:g} s: {last}")


async def _first_problem(users: Users) -> str:
    sandbox = users.sandbox
    deployments, services = [await _by_name(sandbox, each) for each in (DEPLOYMENTS, SERVICES)]
    objects = {each: await _by_name(sandbox, each) for each in (MEMCACHEDS, APPSERVICES)}
    nodes = await _pods(sandbox)
    for (resource, name), spec in users.specs.items():
        obj, child = objects[resource].get(name), deployments.pop(name, None)
        if not is_ready(obj) or obj is None or child is None:
            return f"{resource.kind} {name} is not ready"
        pod = child["spec"]["template"]["spec"]
        if (child["spec"]["replicas"], pod["containers"][0]["image"]) != (spec["size"], spec["image"]):
            return f"Deployment {name} does not match the spec of {resource.kind} {name}"
        served = services.pop(name, None) is not None
        if served != (resource == MEMCACHEDS or "ports" in spec):
            return f"Service {name} {'exists' if served else 'does not exist'}"
        if obj["status"]["nodes"] != sorted(nodes.get(name, ())):
            return f"the status of {resource.kind} {name} names other pods than the existing ones"
    return f"{next(iter({**deployments, **services}))} has no owner" if deployments or services else ""


async def _pods(sandbox: Sandbox) -> dict[str, list[str]]:
    """Names of the live pods, by the name of their object."""
    found: dict[str, list[str]] = {}
    items, _ = await listed(sandbox.client, PODS, sandbox.namespace)
    for item in items:
        if not item["metadata"].get("deletionTimestamp"):
            found.setdefault(item["metadata"]["labels"][INSTANCE], []).append(item["metadata"]["name"])
    return found


async def _by_name(sandbox: Sandbox, resource: Resource) -> dict[str, Object]:
    items, _ = await listed(sandbox.client, resource, sandbox.namespace)
    return {item["metadata"]["name"]: item for item in items if item["metadata"]["name"].startswith("soak-")}


def _check(samples: list[Sample], users: Users, length: Length) -> str:
    """Save the figures, compare them with the limits, and return the most important ones."""
    entries = users.sandbox.proxy.requests.entries
    thirds = samples[: len(samples) // 3], samples[-(len(samples) // 3) :]
    files, tasks = ([median(getattr(each, what) for each in third) for third in thirds] for what in ("files", "tasks"))
    slope = slope_of(samples)
    memory = [round(ends / MIB, 2) for ends in (samples[0].memory, samples[-1].memory)]
    figures = {
        "length": asdict(length),
        "changes": users.done - users.missed,
        "missed changes": users.missed,
        "requests": len(entries),
        "injected": sum(entry.injected for entry in entries),
        "memory MiB": memory,
        "slope MiB/h": round(slope, 2),
        "files": files,
        "tasks": tasks,
        "samples": [asdict(sample) for sample in samples],
    }
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_bytes(msgspec.json.encode(figures))
    print({name: figure for name, figure in figures.items() if name != "samples"}, flush=True)
    sandbox = users.sandbox
    sandbox.check(users.missed < users.done / 5, f"{users.missed} of {users.done} changes met no child")
    for what, (first, last) in (("file descriptors", files), ("tasks", tasks)):
        sandbox.check(last - first <= TOLERANCE, f"{what} grow: {first:g} in the first third, {last:g} in the last")
    if length.seconds >= 600:
        sandbox.check(slope < MAX_SLOPE, f"the memory grows by {slope:.2f} MiB per hour, the limit is {MAX_SLOPE:g}")
    return (
        f"{figures['changes']:,} changes; {len(entries):,} requests, "
        f"{figures['injected']} of them with an injected fault; "
        f"memory {memory[0]:.1f} → {memory[1]:.1f} MiB, {slope:+.2f} MiB per hour (limit: {MAX_SLOPE:+g}); "
        f"tasks {tasks[0]:g} → {tasks[1]:g}; file descriptors {files[0]:g} → {files[1]:g}"
    )


def slope_of(samples: list[Sample]) -> float:
    """The least-squares slope of the memory, in MiB per hour."""
    return linear_regression([each.at for each in samples], [each.memory for each in samples]).slope * 3600 / MIB


LONG = Length(objects=200, warm_up=600, seconds=1800)
SHORT = Length(objects=20, warm_up=15, seconds=45)


def cases() -> list[Case]:
    """The soak test, and a short one that does not check the memory."""
    return [
        Case("soak/long", partial(run_soak, length=LONG), alone=True, sync_period=60, max_retry_delay=10, limit=3600),
        Case("soak/short", partial(run_soak, length=SHORT), sync_period=10, max_retry_delay=5, limit=400),
    ]
