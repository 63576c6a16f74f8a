"""The baseline: a client without logic that receives each new object and sends the requests that it needs.

As a program, it reads one object per line (JSON) from standard input until its end. It watches nothing and reads only
the code of each response. Its bodies are encoded once: only names and uid are replaced.

    python -m bench.openloop ours|plain
"""

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec

from bench.load import IMAGE
from bench.load import memcached as memcached_object
from memcached_operator.kind import Outcome, Snapshot
from memcached_operator.kube.client import FIELD_MANAGER, MERGE_PATCH
from memcached_operator.kube.config import load_config
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, key_of
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.reconcile.apply import build_intent
from memcached_operator.status.conditions import with_transition_times

AGENT = "open-loop"
CONNECTIONS = 50
NAMESPACE, NAME, UID = "its-namespace", "own-name", "own-uid"
"""Placeholders in the prepared requests."""

Template = tuple[str, str, bytes, str]
"""Method, path, body and content type of a prepared request."""


def ours() -> list[Template]:
    """The operator's requests for a new object: a POST for each child, and one status patch."""
    kind = memcached(IMAGE)
    cr = _example_object()
    now = datetime.now(UTC)
    children = [build_intent(cr, child) for child in kind.plan(Snapshot(cr), now).children or ()]
    snapshot = Snapshot(cr, {key_of(kind.owns[index], child): child for index, child in enumerate(children)})
    status = kind.status(snapshot, Outcome(), now).status
    status["conditions"] = with_transition_times((), status["conditions"], now)
    return [*map(_post, children), _status(status)]


def plain() -> list[Template]:
    """The smallest valid Deployment, Service and status."""
    cr = _example_object()
    labels = {"app": NAME}
    owner = {"apiVersion": cr["apiVersion"], "kind": cr["kind"], "name": NAME, "uid": UID, "controller": True}
    meta = {"name": NAME, "namespace": NAMESPACE, "ownerReferences": [owner]}
    container = {"name": "memcached", "image": IMAGE, "ports": [{"containerPort": 11211}]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    service = {"clusterIP": "None", "selector": labels, "ports": [{"port": 11211}]}
    return [
        _post({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}),
        _post({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service}),
        _status({"observedGeneration": 1}),
    ]


def _example_object() -> Object:
    cr = memcached_object(NAMESPACE, NAME)
    cr["metadata"] |= {"uid": UID, "generation": 1}
    return cr


def _post(child: Object) -> Template:
    resource = DEPLOYMENTS if child["kind"] == DEPLOYMENTS.kind else SERVICES
    return ("POST", resource.path(NAMESPACE), _encoded(child), "application/json")


def _status(status: Object) -> Template:
    body = _encoded({"metadata": {"uid": UID}, "status": status})
    return ("PATCH", MEMCACHEDS.path(NAMESPACE, NAME, "status"), body, MERGE_PATCH)


def _encoded(body: Any) -> bytes:
    return msgspec.json.encode(body)


async def run(templates: list[Template]) -> None:
    """Send the requests for each object of standard input, over CONNECTIONS connections."""
    connection = load_config()
    queue: asyncio.Queue[Object | None] = asyncio.Queue()
    connector = aiohttp.TCPConnector(ssl=connection.tls, limit=0)
    headers = {**connection.headers, "User-Agent": AGENT}
    session = aiohttp.ClientSession(connection.server, connector=connector, headers=headers)
    async with session, asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(_work(session, queue, templates))
        await _read(queue.put_nowait)


async def _read(enqueue: Callable[[Object | None], None]) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        enqueue(msgspec.json.decode(line))
    for _ in range(CONNECTIONS):
        enqueue(None)


async def _work(
    session: aiohttp.ClientSession, queue: "asyncio.Queue[Object | None]", templates: list[Template]
) -> None:
    while (cr := await queue.get()) is not None:
        meta = cr["metadata"]
        for method, path, body, content_type in templates:
            filled = body.replace(NAMESPACE.encode(), meta["namespace"].encode()).replace(
                NAME.encode(), meta["name"].encode()
            )
            async with session.request(
                method,
                path.replace(NAMESPACE, meta["namespace"]).replace(NAME, meta["name"]),
                data=filled.replace(UID.encode(), meta["uid"].encode()),
                params={"fieldManager": FIELD_MANAGER},
                headers={"Content-Type": content_type},
            ) as response:
                if response.status >= 400:
                    raise RuntimeError(f"{method} {path}: {response.status} {(await response.read())[:300]!r}")
                await response.read()


if __name__ == "__main__":
    asyncio.run(run({"ours": ours, "plain": plain}[sys.argv[1]]()))
