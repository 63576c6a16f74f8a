"""Load: many clients that create and change Memcacheds, and another one that measures its own latency."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

import goldens
from memcached_operator.kube.client import MERGE_PATCH, ApiClient
from memcached_operator.kube.config import Config
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS

CLIENTS = 50
IMAGE = "docker.io/library/memcached:1.6.45"
AGENT = "bench"
MINIMAL, EVERY_FIELD, STABLE = "minimal", "every-field", "stable"


def _golden(shape: str) -> Object:
    """The spec of a golden."""
    return goldens.objects(goldens.paths("memcached")[shape])[0]["spec"]


SPECS: dict[str, Object] = {
    MINIMAL: {"size": 1, "containerPort": 11211, "image": IMAGE},
    EVERY_FIELD: {
        **_golden("monitoring"),
        **_golden("placing"),
        **_golden("tls-own-client-ca"),
        **_golden("inherited-metadata"),
        **_golden("every-field"),
        "identity": "Pooled",
        "resources": {},  # the limit of the golden is too low for connections with TLS
    },
    STABLE: {"size": 1, "containerPort": 11211, "image": IMAGE, "identity": "Stable"},
}
"""The specs of created objects, as admission stores them."""

_ALWAYS = ("create deployments", "create services")
CREATES = {
    MINIMAL: _ALWAYS,
    EVERY_FIELD: (*_ALWAYS, "create poddisruptionbudgets", "create networkpolicies", "create podmonitors"),
    STABLE: ("create statefulsets", "create services", "create configmaps"),
}
"""The writes that create the children of an object with each spec."""


@asynccontextmanager
async def user(connection: Config) -> AsyncGenerator[ApiClient]:
    """A client that is not the operator."""
    connector = aiohttp.TCPConnector(ssl=connection.tls, limit=0)
    headers = {**connection.headers, "User-Agent": AGENT}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield ApiClient(connection, session)


def memcached(namespace: str, name: str, spec: str = MINIMAL) -> Object:
    """A Memcached with one of SPECS."""
    return {
        "apiVersion": "cache.example.com/v1",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(SPECS[spec]),
    }


def path(namespace: str) -> str:
    """The path at which Memcacheds of a namespace are created."""
    return MEMCACHEDS.path(namespace)


async def create(client: ApiClient, namespace: str, name: str, spec: str = MINIMAL) -> Object:
    """Create one object; returns it as stored."""
    return await client.request("POST", path(namespace), memcached(namespace, name, spec))


async def storm(
    client: ApiClient, namespace: str, count: int, on_created: Callable[[Object], None], spec: str = MINIMAL
) -> None:
    """Create objects with CLIENTS parallel clients; call `on_created` with each."""

    async def one(name: str) -> None:
        on_created(await create(client, namespace, name, spec))

    await by_clients(one, names(count))


async def change(
    client: ApiClient, namespace: str, count: int, fields: Object, on_changed: Callable[[Object], None]
) -> None:
    """Change fields of the spec of all objects with CLIENTS parallel clients; call `on_changed` with each object."""

    async def one(name: str) -> None:
        on_changed(await client.patch(Key(MEMCACHEDS, namespace, name), {"spec": fields}))

    await by_clients(one, names(count))


async def scale(client: ApiClient, namespace: str, count: int, size: int) -> None:
    """Change the size of all objects through the subresource that autoscalers use, with CLIENTS parallel clients."""

    async def one(name: str) -> None:
        body = {"spec": {"replicas": size}}
        await client.request("PATCH", MEMCACHEDS.path(namespace, name, "scale"), body, MERGE_PATCH)

    await by_clients(one, names(count))


async def bystander(
    client: ApiClient, namespace: str, period: float, on_created: Callable[[Object], None], spec: str = MINIMAL
) -> None:
    """Create objects one after the other, with a pause of `period` seconds, until cancelled."""
    number = 0
    while True:
        on_created(await create(client, namespace, f"second-{number:04}", spec))
        number += 1
        await asyncio.sleep(period)


async def singles(
    client: ApiClient,
    namespace: str,
    numbers: range,
    period: float,
    on_created: Callable[[Object], None],
    spec: str = MINIMAL,
) -> None:
    """Create objects with these numbers, with a pause of `period` seconds."""
    for number in numbers:
        on_created(await create(client, namespace, single(number), spec))
        await asyncio.sleep(period)


def single(number: int) -> str:
    """Name of an object of `singles`."""
    return f"single-{number:04}"


def names(count: int) -> list[str]:
    """Names of the objects of a storm."""
    return [f"cache-{number:05}" for number in range(count)]


async def by_clients(work: Callable[[str], Any], items: Iterable[str]) -> None:
    """Distribute work to CLIENTS parallel clients."""
    remaining = iter(items)

    async def client() -> None:
        for item in remaining:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())
