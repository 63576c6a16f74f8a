"""The baseline: a client without logic that receives each new or changed object and sends the requests that it needs.

As a program, it reads one object per line (JSON) from standard input until its end. It watches nothing. Of a response
it reads only the code and the uid of a created object. Its bodies are encoded once: only names, uid, size and
generation are replaced.

    python -m bench.openloop PROFILE SPEC
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import aiohttp
import msgspec

from bench.load import IMAGE, STABLE
from bench.load import memcached as memcached_object
from memcached_api.images import Images
from memcached_operator.engine.kind import Outcome
from memcached_operator.engine.reporting import conditions
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.engine.writes.ownership import preparation_patch
from memcached_operator.kube.client import APPLY_PATCH, FIELD_MANAGER, JSON, JSON_PATCH, MERGE_PATCH
from memcached_operator.kube.config import load_config
from memcached_operator.kube.resource import Object, key_of
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.snapshot import Snapshot

AGENT = "open-loop"
NAMESPACE, NAME, UID = "its-namespace", "own-name", "own-uid"
SIZE, OTHER_SIZE, GENERATION, OTHER_GENERATION = 98760001, 98760002, 98760003, 98760004
"""Placeholders in the prepared requests. UID is the owner's uid in a POST, and that of the changed object in a PATCH.
OTHER_SIZE and OTHER_GENERATION are the values after a change."""

SIZES_WITH_SLOTS = 1, 2
"""Not placeholders: with slots, the number of servers in the status and the ConfigMap depends on the size."""

RESOURCES = {each.kind: each for each in memcached(Images()).owns}
"""The resources of the children, by kind."""

Template = tuple[str, str, bytes, str]
"""Method, path, body and content type of a prepared request."""


@dataclass(frozen=True)
class Requests:
    """The prepared requests for a new object and for a changed size. The last request is the status patch.

    `scale` is empty if a client is used only for new objects.
    """

    create: Sequence[Template]
    scale: Sequence[Template] = ()


@dataclass(frozen=True)
class Profile:
    """The requests of a client, and its number of connections.

    `children_first`: statuses wait until no object is queued whose children are not written, as in the operator.
    """

    requests: Callable[[str], Requests]
    connections: int = 50
    children_first: bool = False

    def phases(self, templates: Sequence[Template]) -> list[Sequence[Template]]:
        """The requests for one object, divided where requests for other objects may go first."""
        return [templates[:-1], templates[-1:]] if self.children_first else [templates]


def ours(spec: str) -> Requests:
    """The operator's requests.

    For a new object: a POST for each child, and a status patch. For another size: a merge patch of the workload, with
    its uid as precondition; for a ConfigMap, the transfer of the field ownership and an apply; and a status patch.
    """
    sizes = SIZES_WITH_SLOTS if spec == STABLE else (SIZE, OTHER_SIZE)
    new, scaled = (
        _example_object(spec, size, generation)
        for size, generation in zip(sizes, (GENERATION, OTHER_GENERATION), strict=True)
    )
    children, first = _children_and_status(new, {})
    others, second = _children_and_status(scaled, first)
    changes = [request for old, other in zip(children, others, strict=True) for request in _changes(old, other)]
    return Requests([*map(_post, children), _status(first)], [*changes, _status(conditions.merge_patch(first, second))])


def _children_and_status(cr: Object, old: Object) -> tuple[list[Object], Object]:
    """The children and the status of an object with this previous status, before its Deployment has a status."""
    kind, now = memcached(Images(IMAGE)), datetime.now(UTC)
    children = [build_intent(cr, child) for child in kind.plan(Snapshot(cr), now).children or ()]
    snapshot = Snapshot(cr, {key_of(RESOURCES[child["kind"]], child): child for child in children})
    status = kind.status(snapshot, Outcome(), now).status
    status["conditions"] = conditions.with_transition_times(old.get("conditions", ()), status["conditions"], now)
    return children, status


def plain(spec: str) -> Requests:
    """The smallest valid Deployment, Service and status."""
    cr = _example_object(spec, SIZE, GENERATION)
    labels = {"app": NAME}
    owner = {"apiVersion": cr["apiVersion"], "kind": cr["kind"], "name": NAME, "uid": UID, "controller": True}
    meta = {"name": NAME, "namespace": NAMESPACE, "ownerReferences": [owner]}
    container = {"name": "memcached", "image": IMAGE, "ports": [{"containerPort": 11211}]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    service = {"clusterIP": "None", "selector": labels, "ports": [{"port": 11211}]}
    return Requests(
        [
            _post({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": deployment}),
            _post({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service}),
            _status({"observedGeneration": 1}),
        ]
    )


PROFILES = {
    "ours": Profile(ours),
    "children first": Profile(ours, connections=16, children_first=True),
    "plain": Profile(plain),
}
"""Every baseline client, by name."""


def _example_object(spec: str, size: int, generation: int) -> Object:
    cr = memcached_object(NAMESPACE, NAME, spec)
    cr["metadata"] |= {"uid": UID, "generation": generation}
    cr["spec"]["size"] = size
    return cr


def _post(child: Object) -> Template:
    resource = RESOURCES[child["kind"]]
    return ("POST", resource.path(NAMESPACE), _encoded(child), JSON)


def _changes(old: Object, new: Object) -> list[Template]:
    """The requests for a child that another size changes."""
    if old == new:
        return []
    path = RESOURCES[new["kind"]].path(NAMESPACE, new["metadata"]["name"])
    if "spec" in new:
        body = {"metadata": {"uid": UID}, "spec": {"replicas": new["spec"]["replicas"]}}
        return [("PATCH", path, _encoded(body), MERGE_PATCH)]
    stored = {"metadata": {"uid": UID, "managedFields": [{"manager": FIELD_MANAGER, "operation": "Update"}]}}
    applied = {**new, "metadata": {**new["metadata"], "uid": UID}}
    return [
        ("PATCH", path, _encoded(preparation_patch(new, stored)), JSON_PATCH),
        ("PATCH", path, _encoded(applied), APPLY_PATCH),
    ]


def _status(status: Object) -> Template:
    body = _encoded({"metadata": {"uid": UID}, "status": status})
    return ("PATCH", MEMCACHEDS.path(NAMESPACE, NAME, "status"), body, MERGE_PATCH)


def _encoded(body: Any) -> bytes:
    return msgspec.json.encode(body)


class _Meta(msgspec.Struct):
    uid: str
    name: str


class _Created(msgspec.Struct):
    metadata: _Meta


def filled(template: Template, cr: Object, uids: Mapping[str, str]) -> tuple[str, bytes]:
    """Path and body of a prepared request for an object. `uids`: the uids of children by path."""
    meta, size = cr["metadata"], cr["spec"]["size"]
    _, path, body, _ = template
    path = path.replace(NAMESPACE, meta["namespace"]).replace(NAME, meta["name"])
    values = {NAMESPACE: meta["namespace"], NAME: meta["name"], UID: uids.get(path, meta["uid"])}
    values |= {str(placeholder): str(size) for placeholder in (SIZE, OTHER_SIZE)}
    values |= {str(placeholder): str(meta["generation"]) for placeholder in (GENERATION, OTHER_GENERATION)}
    for placeholder, value in values.items():
        body = body.replace(placeholder.encode(), value.encode())
    return path, body


Task = tuple[int, int, Object | None, Sequence[Sequence[Template]]]
"""Rank and number, which order the queue, then an object (None: no more objects) and its remaining phases."""


class Sender:
    """Sends the requests of a profile for each object that it is given."""

    def __init__(self, session: aiohttp.ClientSession, profile: Profile, spec: str) -> None:
        self._session = session
        self._profile = profile
        self._requests = profile.requests(spec)
        self._queue: asyncio.PriorityQueue[Task] = asyncio.PriorityQueue()
        self._numbers = count()
        self._uids: dict[str, str] = {}
        self._decoder = msgspec.json.Decoder(_Created)

    def enqueue(self, cr: Object) -> None:
        """Send the requests for a new object, or for one whose size has changed, to the workers."""
        templates = self._requests.create if cr["metadata"]["generation"] == 1 else self._requests.scale
        self._put(0, cr, self._profile.phases(templates))

    def close(self) -> None:
        """End the workers when all requests are sent."""
        for _ in range(self._profile.connections):
            self._put(2, None, ())

    def _put(self, rank: int, cr: Object | None, phases: Sequence[Sequence[Template]]) -> None:
        self._queue.put_nowait((rank, next(self._numbers), cr, phases))

    async def work(self) -> None:
        """Send requests until closed. Raises RuntimeError if one is rejected."""
        while True:
            _, _, cr, phases = await self._queue.get()
            if cr is None:
                return
            for template in phases[0]:
                await self._send(template, cr)
            if phases[1:]:
                self._put(1, cr, phases[1:])

    async def _send(self, template: Template, cr: Object) -> None:
        method, _, _, content_type = template
        path, body = filled(template, cr, self._uids)
        headers = {"Content-Type": content_type}
        params = {"fieldManager": FIELD_MANAGER} | ({"force": "true"} if content_type == APPLY_PATCH else {})
        async with self._session.request(method, path, data=body, params=params, headers=headers) as response:
            reply = await response.read()
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {reply[:300]!r}")
        if method == "POST":
            created = self._decoder.decode(reply).metadata
            self._uids[f"{path}/{created.name}"] = created.uid


async def run(profile: Profile, spec: str) -> None:
    """Send the requests for each object of standard input."""
    connection = load_config()
    connector = aiohttp.TCPConnector(ssl=connection.tls, limit=0)
    headers = {**connection.headers, "User-Agent": AGENT}
    session = aiohttp.ClientSession(connection.server, connector=connector, headers=headers)
    async with session, asyncio.TaskGroup() as group:
        sender = Sender(session, profile, spec)
        for _ in range(profile.connections):
            group.create_task(sender.work())
        await _read(sender.enqueue)
        sender.close()


async def _read(enqueue: Callable[[Object], None]) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        enqueue(msgspec.json.decode(line))


if __name__ == "__main__":
    asyncio.run(run(PROFILES[sys.argv[1]], sys.argv[2]))
