"""What users do: many clients that create and change Memcacheds, and one more who waits for his own."""

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
    """A client who is not the operator."""
    connector = aiohttp.TCPConnector(ssl=connection.tls, limit=0)
    headers = {**connection.headers, "User-Agent": AGENT}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Client(connection, session)


def memcached(namespace: str, name: str) -> Object:
    """As admission would store it."""
    return {
        "apiVersion": "cache.example.com/v1",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": 1, "containerPort": 11211, "image": IMAGE},
    }


def path(namespace: str) -> str:
    """Where the Memcacheds of a namespace are created."""
    return MEMCACHEDS.path(namespace)


async def create(client: Client, namespace: str, name: str) -> Object:
    """Create one object; what the API server made of it."""
    return await client.request("POST", path(namespace), memcached(namespace, name))


async def storm(client: Client, namespace: str, count: int, told: Callable[[Object], None]) -> None:
    """Create so many objects by CLIENTS clients, each as fast as it is answered; tell of each."""

    async def one(name: str) -> None:
        told(await create(client, namespace, name))

    await by_clients(one, names(count))


async def resize(client: Client, namespace: str, count: int, size: int) -> None:
    """Change the spec of all objects, by CLIENTS clients."""

    async def one(name: str) -> None:
        await client.patch(Key(MEMCACHEDS, namespace, name), {"spec": {"size": size}})

    await by_clients(one, names(count))


async def bystander(client: Client, namespace: str, period: float, told: Callable[[Object], None]) -> None:
    """Create one object after the other, with pauses of so many seconds, until cancelled."""
    number = 0
    while True:
        told(await create(client, namespace, f"second-{number:04}"))
        number += 1
        await asyncio.sleep(period)


async def singles(
    client: Client, namespace: str, numbers: range, period: float, told: Callable[[Object], None]
) -> None:
    """Create objects of these numbers, one each period of so many seconds."""
    for number in numbers:
        told(await create(client, namespace, single(number)))
        await asyncio.sleep(period)


def single(number: int) -> str:
    """Name of an object of `singles`."""
    return f"single-{number:04}"


def names(count: int) -> list[str]:
    """Names of the objects of a storm."""
    return [f"cache-{number:05}" for number in range(count)]


async def by_clients(work: Callable[[str], Any], items: Iterable[str]) -> None:
    """Spread work over CLIENTS clients."""
    left = iter(items)

    async def client() -> None:
        for item in left:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())
