"""Where a case plays: a namespace, a proxy, an operator of its own, and a user with a client."""

import asyncio
import os
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from faults.confinement import ACCOUNT, bound
from faults.process import ROOT, Operator, kept, kubeconfig
from faults.proxy import KeyPair, Proxy, proxy
from faults.state import settled
from faults.workloads import custom, replacing
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import Client
from memcached_operator.kube.config import Config
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

POLL = 0.25
"""Seconds between two looks at what is waited for."""
PATIENCE = float(os.environ.get("FAULTS_PATIENCE", "1"))
"""Everything that is waited for may take so many times as long: on a machine that has much else to do."""
NORMAL = 40.0
"""Seconds within which an object that nothing disturbs is available, on a very busy machine: 2 on an idle one."""
RBAC = "rbac.authorization.k8s.io"
ROLES: dict[str, list[Object]] = {
    path.stem: yaml.safe_load(path.read_text())["rules"]
    for path in (ROOT / "config/rbac" / name for name in ("role.yaml", "leader_election_role.yaml"))
}
"""What config/rbac lets the operator do: rules by the name of the file."""
WATCHED = 5
"""Resources that the operator watches."""


class FailedError(Exception):
    """What must hold does not; the message says what."""


@dataclass(frozen=True)
class Settings:
    """How the operator runs, all of it by its own options.

    `relist` and `retry` are seconds: between readings of everything, and between tries at most.
    """

    relist: float = 5.0
    retry: float = 2.0
    arguments: tuple[str, ...] = ()
    sources: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass
class Stage:
    """Of one case."""

    namespace: str
    client: Client
    proxy: Proxy
    operator: Operator
    settings: Settings
    address: str = ""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    async def create(self, resource: Resource, name: str, spec: Mapping[str, Any]) -> Object:
        """Make an object of one of our kinds."""
        obj = custom(resource, self.namespace, name, spec)
        return await self.client.request("POST", resource.path(self.namespace), obj)

    async def change(self, resource: Resource, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Object:
        """Change the spec of an object."""
        return await self.merge(Key(resource, self.namespace, name), {"spec": replacing(old, new)})

    async def merge(self, key: Key, patch: Object) -> Object:
        """Merge a patch into an object."""
        path = key.resource.path(key.namespace, key.name)
        merge = "application/merge-patch+json"
        return await self.client.request("PATCH", path, patch, merge, {"fieldManager": "somebody"})

    async def delete(self, resource: Resource, name: str, propagation: str = "Background") -> None:
        """Delete an object."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        await self.client.request("DELETE", resource.path(self.namespace, name), options)

    async def get(self, resource: Resource, name: str) -> Object | None:
        """An object, or None."""
        return await self.client.get(Key(resource, self.namespace, name))

    async def settled(self, resource: Resource, name: str, seconds: float = NORMAL) -> Object:
        """Wait until an object is available, done and well."""

        async def look() -> Object | None:
            found = await self.get(resource, name)
            return found if settled(found) else None

        return await until(look, seconds, f"{resource.kind} {name} settles")

    async def gone(self, resource: Resource, name: str, seconds: float = NORMAL) -> None:
        """Wait until there is no such object."""

        async def look() -> bool:
            return await self.get(resource, name) is None

        await until(look, seconds, f"{resource.kind} {name} goes")

    async def watching(self, seconds: float = 3 * NORMAL) -> None:
        """Wait until the operator watches everything."""

        async def look() -> bool:
            return len({stream.call.resource for stream in self.proxy.open_watches()}) == WATCHED

        await until(look, seconds, "the operator watches")

    def holds(self, what: object, message: str) -> None:
        """Raises FailedError with the message where it does not hold."""
        if not what:
            raise FailedError(message)


async def until(look: Callable[[], Awaitable[Any]], seconds: float, what: str) -> Any:
    """Look until it is true. Raises FailedError, with what was seen last, where that does not come."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        found = await look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise FailedError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(POLL)


async def holding(event: Awaitable[Any], seconds: float, what: str) -> None:
    """Wait for something. Raises FailedError where it does not come."""
    try:
        await asyncio.wait_for(event, seconds * PATIENCE)
    except TimeoutError:
        raise FailedError(f"not within {seconds:g} s: {what}") from None


@dataclass(frozen=True)
class Plane:
    """The control plane that all cases of a run share, and what they have in common."""

    connection: Config
    client: Client
    pair: KeyPair
    directory: Path
    token: str = field(default_factory=lambda: secrets.token_hex(2))

    @asynccontextmanager
    async def stage(self, name: str, settings: Settings) -> AsyncGenerator[Stage]:
        """A stage; the operator on it is not started yet. Its namespace goes with the control plane."""
        namespace = await self._namespace(name)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(bound(self.client, namespace))
            user = user_of(namespace)
            here, address = await stack.enter_async_context(proxy(self.connection, self.pair, user))
            operator = self.operator(namespace, address, settings)
            here.kill = operator.kill
            await stack.enter_async_context(kept(operator))
            # Namespaces go with the control plane; what is in them, at once, for there is room for so many pods only.
            stack.push_async_callback(self._clear, namespace)
            yield Stage(namespace, self.client, here, operator, settings, address)

    def operator(self, namespace: str, address: str, settings: Settings, name: str = "operator") -> Operator:
        """An operator that works in one namespace by way of a proxy."""
        config = kubeconfig(self.directory / f"{namespace}.{name}.kubeconfig", address, self.pair.ca)
        arguments = [
            f"--watch-namespaces={namespace}",
            f"--sync-period={settings.relist:g}",
            f"--max-retry-delay={settings.retry:g}",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            *settings.arguments,
        ]
        log = self.directory / f"{namespace}.{name}.log"
        environment = {"KUBECONFIG": str(config), "POD_NAMESPACE": namespace, **settings.environment}
        return Operator(arguments, environment, settings.sources, log)

    async def _clear(self, namespace: str) -> None:
        for resource in (MEMCACHEDS, APPSERVICES):
            await self.client.request("DELETE", resource.path(namespace))

    async def _namespace(self, name: str) -> str:
        """A namespace in which the operator may do what config/rbac lets it do, and nothing else."""
        await self.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for role, rules in ROLES.items():
            await grant(self.client, name, role, rules)
        return name


def user_of(namespace: str) -> str:
    """Who the operator of a stage is to the API server."""
    return f"system:serviceaccount:{namespace}:{ACCOUNT}"


async def grant(client: Client, namespace: str, role: str, rules: list[Object]) -> None:
    """Let the operator of a namespace do there what these rules say."""
    base = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    await client.request("POST", f"{base}/roles", {"metadata": {"name": role}, "rules": rules})
    binding = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    await client.request("POST", f"{base}/rolebindings", binding)
