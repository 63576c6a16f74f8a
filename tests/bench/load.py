"""Load: many clients that create and change Memcacheds, and another one that measures its own latency."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from memcached_operator.kube.client import Client
from memcached_operator.kube.config import Config
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS

CLIENTS = 50
IMAGE = "docker.io/library/memcached:1.6.38"
AGENT = "bench"


@asynccontextmanager
async def user(connection: Config) -> AsyncGenerator[Client]:
    """A client that is not the operator."""
    connector = aiohttp.TCPConnector(ssl=connection.tls, limit=0)
    headers = {**connection.headers, "User-Agent": AGENT}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Client(connection, session)


def memcached(namespace: str, name: str) -> Object:
    """A Memcached as admission stores it."""
    return {
        "apiVersion": "cache.example.com/v1",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": 1, "containerPort": 11211, "image": IMAGE},
    }


def path(namespace: str) -> str:
    """The path at which Memcacheds of a namespace are created."""
    return MEMCACHEDS.path(namespace)


async def create(client: Client, namespace: str, name: str) -> Object:
    """Create one object; returns it as stored."""
    return await client.request("POST", path(namespace), memcached(namespace, name))


async def storm(client: Client, namespace: str, count: int, on_created: Callable[[Object], None]) -> None:
    """Create objects with CLIENTS parallel clients; call `on_created` with each."""

    async def one(name: str) -> None:
        on_created(await create(client, namespace, name))

    await by_clients(one, names(count))


async def resize(client: Client, namespace: str, count: int, size: int) -> None:
    """Change the spec of all objects with CLIENTS parallel clients."""

    async def one(name: str) -> None:
        await client.patch(Key(MEMCACHEDS, namespace, name), {"spec": {"size": size}})

    await by_clients(one, names(count))


async def bystander(client: Client, namespace: str, period: float, on_created: Callable[[Object], None]) -> None:
    """Create objects one after the other, with a pause of `period` seconds, until cancelled."""
    number = 0
    while True:
        on_created(await create(client, namespace, f"second-{number:04}"))
        number += 1
        await asyncio.sleep(period)


async def singles(
    client: Client, namespace: str, numbers: range, period: float, on_created: Callable[[Object], None]
) -> None:
    """Create objects with these numbers, with a pause of `period` seconds."""
    for number in numbers:
        on_created(await create(client, namespace, single(number)))
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
