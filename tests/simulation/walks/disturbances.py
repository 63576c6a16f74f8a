"""The steps that disturb: faults of requests and watches, processes that stop, changes of the Lease, and time."""

import asyncio
import json
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from faults.faulty import Delay, Exchange, Fault, Hang, Kill, LoseReply, Reject, Reset, ServeWatch, event, status
from faults.rules import Rule
from memcached_operator.kube.resource import Object
from simulation.walks.world import World

GARBLED: Final = b'{"type":"ADDED","object":{"kind"\n'
PARTIAL: Final = b'{"type":"MODIFIED","object":{"metadata":{"na'
EXPIRED: Final = event("ERROR", status(410, "Expired", "injected by the test"))
FAULTS: Final[dict[str, Fault]] = {
    "killed before": Kill("before"),
    "killed during": Kill("during"),
    "killed after": Kill("after"),
    "lost": LoseReply(),
    "lost in a gateway": LoseReply(504),
    "409": Reject(409, "Conflict"),
    "429": Reject(429, "TooManyRequests", retry_after=7),
    "500": Reject(500, "InternalError"),
    "503": Reject(503, "ServiceUnavailable"),
    "403": Reject(403, "Forbidden"),
    "422": Reject(422, "Invalid"),
    "reset": Reset(),
    "late": Delay(3),
    "hanging": Hang(),
}
"""The faults of requests."""
CREATION_FAULTS: Final[dict[str, Fault]] = {"terminating": Reject(404, "NotFound", cause="NamespaceTerminating")}
"""Those of creations. An API server does not respond to a read of an existing object with 404."""
WATCH_FAULTS: Final[dict[str, Fault]] = {
    "410": Reject(410, "Expired"),
    "404": Reject(404, "NotFound"),
    "500": Reject(500, "InternalError"),
    "expired": ServeWatch(EXPIRED),
    "garbled": ServeWatch(GARBLED),
    "partial": ServeWatch(PARTIAL, end="cut"),
    "cut": ServeWatch(end="cut"),
    "closed": ServeWatch(),
    "silent": ServeWatch(end="silence"),
    "hanging": Hang(),
    "killed": Kill("after"),
}
"""The faults of new watches."""
LIST_FAULTS: Final[dict[str, Fault]] = {
    **{code: FAULTS[code] for code in ("403", "500", "503", "hanging")},
    "404": Reject(404, "NotFound"),
}
"""The faults of lists. Discovery still says that the resources are served."""
LISTED: Final = (
    *("memcacheds", "appservices", "deployments", "statefulsets", "pods", "services", "configmaps"),
    *("poddisruptionbudgets", "networkpolicies", "podmonitors", "prometheusrules"),
)
"""The resources that the operator lists, besides MemcachedProxies."""
WRITES: Final = (
    "create *",
    "apply *",
    "migrate *",
    "patch *",
    "delete *",
    "patch */status",
    "create events",
    "create deployments",
    "create services",
    "apply statefulsets",
)
READS: Final = (
    "get *",
    "list *",
    "list pods",
    "list deployments",
    "list memcacheds",
    "* *",
    "update leases",
    "get leases",
)
WATCHED: Final = (
    "memcacheds",
    "appservices",
    "deployments",
    "statefulsets",
    "pods",
    "services",
    "poddisruptionbudgets",
)
PROXIES: Final = "memcachedproxies"
"""Watched too, in walks that have them."""
INTERRUPTIONS: Final = {"closed": b"", "expired": EXPIRED, "garbled": GARBLED, "partial": PARTIAL}
"""What open watches send before they end."""


@dataclass(frozen=True)
class Inject:
    """The requests that match `what` fail, after the first `skip` ones: `times` ones, or for some seconds."""

    what: str
    fault: str
    times: int | None
    seconds: float | None
    skip: int

    async def __call__(self, world: World) -> None:
        is_watch = self.what.startswith("watch")
        fault = (WATCH_FAULTS if is_watch else FAULTS | CREATION_FAULTS)[self.fault]
        world.inject(Rule(self.what, fault, times=self.times, seconds=self.seconds, skip=self.skip))


@dataclass(frozen=True)
class Unlisted:
    """The lists of a resource fail, `times` of them or for some seconds. `starts`: the operators start with it.

    Otherwise, their open watches expire.
    """

    resource: str
    fault: str
    times: int | None
    seconds: float | None
    starts: bool

    async def __call__(self, world: World) -> None:
        rule = Rule(f"list {self.resource}", LIST_FAULTS[self.fault], times=self.times, seconds=self.seconds)
        world.inject(rule)
        if self.starts:
            for each in world.candidates:
                each.operator.kill()
        else:
            await Interrupt(self.resource, "expired", cut=False)(world)


@dataclass(frozen=True)
class Empty:
    """The next list of a resource is empty by mistake, and the open watches expire. Only a sync repairs this."""

    resource: str

    async def __call__(self, world: World) -> None:
        if not world.settings.sync_time:
            return

        async def serve(exchange: Exchange) -> web.StreamResponse:
            meta = {"resourceVersion": str(world.plane.server.version)}
            found: Object = {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": []}
            return web.Response(body=json.dumps(found).encode(), content_type="application/json")

        world.unlisted.add(self.resource)
        world.inject(Rule(f"list {self.resource}", serve, times=1))
        await Interrupt(self.resource, "expired", cut=False)(world)


@dataclass(frozen=True)
class Interrupt:
    """The open watches of a resource end."""

    resource: str
    how: str
    cut: bool

    async def __call__(self, world: World) -> None:
        for each in world.candidates:
            watches = sorted(each.proxy.open_watches(self.resource), key=lambda stream: stream.call)
            for stream in watches:
                await stream.interrupt(INTERRUPTIONS[self.how], cut=self.cut)


@dataclass(frozen=True)
class Hold:
    """The events of these resources are held back until `Pass`."""

    resources: tuple[str, ...]

    async def __call__(self, world: World) -> None:
        for each in world.candidates:
            each.proxy.hold(*self.resources)


@dataclass(frozen=True)
class Pass:
    """All events pass. `slow`: in small pieces, from now on."""

    slow: bool

    async def __call__(self, world: World) -> None:
        for each in world.candidates:
            each.proxy.release()
            each.proxy.pace = (200, 0.05) if self.slow else None


@dataclass(frozen=True)
class Compact:
    """All earlier versions expire."""

    async def __call__(self, world: World) -> None:
        world.plane.server.compact()


@dataclass(frozen=True)
class Process:
    """A process is killed or terminated, or it is started again. `killed`: it is restarted immediately."""

    number: int
    what: str

    async def __call__(self, world: World) -> None:
        operator = world.candidate(self.number).operator
        match self.what:
            case "killed":
                operator.kill()
            case "stopped":
                await operator.stop()
            case "terminated":
                world.terminations += 1
                await operator.terminate()
            case "shut down":
                world.terminations += 1
                await operator.shut_down()
            case _:
                operator.start()


PROCESSES: Final = ("killed", "stopped", "terminated", "shut down", "started")


@dataclass(frozen=True)
class Lease:
    """A user deletes the Lease, or writes another name into it."""

    deleted: bool

    async def __call__(self, world: World) -> None:
        if self.deleted:
            await world.delete(world.election.key)
        elif world.elects:
            held = {"holderIdentity": "another", "leaseDurationSeconds": 15}  # a released one has 1 s
            await world.merge(world.election.key, {"spec": held})


@dataclass(frozen=True)
class Wait:
    """Time passes. `seconds`: less if a world without a rest has many requests per second."""

    seconds: float

    async def __call__(self, world: World) -> None:
        longest = LONGEST_BUSY if world.elects or world.settings.sync_time else LONGEST
        await asyncio.sleep(min(self.seconds, longest))


LONGEST: Final = 7200.0
LONGEST_BUSY: Final = 150.0
"""Maximum seconds of a pause with an election, whose standby reads the Lease every 2 s, or with a short sync period."""
