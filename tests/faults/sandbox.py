"""The sandbox of a case: a namespace, a proxy, an operator of its own, and a user's client."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from faults.admission_policies import ACCOUNT, bound_account
from faults.background import FailedError, TimedOutError
from faults.interception import Interception
from faults.process import ROOT, Operator, kubeconfig, supervised
from faults.proxy import KeyPair, proxy
from faults.rules import ActiveRule
from faults.state import is_ready
from faults.workloads import merge_patch, new_object
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.config import Config
from memcached_operator.kube.resource import Key, Object, Resource, nested_list
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES

POLL, MAX_POLL = 0.25, 1.0
"""Seconds between two attempts of `wait_until`: at first, and when it has waited for long."""
TIMEOUT_FACTOR = float(os.environ.get("FAULTS_TIMEOUT_FACTOR", "1"))
"""Factor for every deadline, for a busy machine."""
LONG_SYNC_PERIOD = 600.0 * TIMEOUT_FACTOR
"""Sync period in seconds for cases that a sync would repair: longer than the cases, so no sync takes place in them."""
READY_TIMEOUT = 40.0
"""Seconds until an object without a fault is ready, on a very busy machine: 2 on an idle one."""
RBAC = "rbac.authorization.k8s.io"
ROLES: dict[str, list[Object]] = {
    path.stem: yaml.safe_load(path.read_text())["rules"]
    for path in (ROOT / "config/rbac" / name for name in ("role.yaml", "leader_election_role.yaml"))
}
"""The operator's permissions from config/rbac: rules by file name."""
WATCHED = 12
"""Number of resources that the operator watches, with PodMonitors and PrometheusRules, which the control planes of the
tests serve."""


@dataclass(frozen=True)
class Settings:
    """Command-line options and environment of the operator.

    `sync_period` and `max_retry_delay` are in seconds.
    """

    sync_period: float = 5.0
    max_retry_delay: float = 2.0
    arguments: tuple[str, ...] = ()
    sources: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def sync_time(self) -> float:
        """Seconds until a sync has repaired what events did not; 0 if the case must be correct without a sync."""
        return 0.0 if self.sync_period >= LONG_SYNC_PERIOD else self.sync_period


@dataclass
class Sandbox:
    """The sandbox of one case."""

    namespace: str
    client: ApiClient
    proxy: Interception
    operator: Operator
    settings: Settings
    address: str = ""

    async def start(self) -> None:
        """Start the operator, and wait until it watches all its resources."""
        self.operator.start()
        await self.wait_watching()

    async def create_ready(self, resource: Resource, name: str, spec: Mapping[str, Any]) -> None:
        """Create an object, and wait until it is ready."""
        await self.create(resource, name, spec)
        await self.wait_ready(resource, name)

    async def create(self, resource: Resource, name: str, spec: Mapping[str, Any]) -> Object:
        """Create an object of one of our kinds."""
        obj = new_object(resource, self.namespace, name, spec)
        return await self.client.request("POST", resource.path(self.namespace), obj)

    async def change(self, resource: Resource, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Object:
        """Change the spec of an object."""
        return await self.merge(Key(resource, self.namespace, name), {"spec": merge_patch(old, new)})

    async def merge(self, key: Key, patch: Object) -> Object:
        """Send a merge patch."""
        path = key.resource.path(key.namespace, key.name)
        merge = "application/merge-patch+json"
        return await self.client.request("PATCH", path, patch, merge, {"fieldManager": "test-user"})

    async def delete(self, resource: Resource, name: str, propagation: str = "Background") -> None:
        """Delete an object."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        await self.client.request("DELETE", resource.path(self.namespace, name), options)

    async def get(self, resource: Resource, name: str) -> Object | None:
        """An object, or None."""
        return await self.client.get(Key(resource, self.namespace, name))

    async def condition(self, resource: Resource, name: str, kind: str) -> Object:
        """A condition of an object; without values if it does not exist."""
        found = nested_list(await self.get(resource, name) or {}, "status", "conditions")
        return dict(next((each for each in found if each["type"] == kind), {"status": "", "reason": "", "message": ""}))

    async def wait_ready(self, resource: Resource, name: str, seconds: float = READY_TIMEOUT) -> Object:
        """Wait until an object is ready: Available, not Progressing, not Degraded."""

        async def poll() -> Object | None:
            found = await self.get(resource, name)
            return found if is_ready(found) else None

        return await wait_until(poll, seconds, f"{resource.kind} {name} is ready")

    async def wait_deleted(self, resource: Resource, name: str, seconds: float = READY_TIMEOUT) -> None:
        """Wait until an object is deleted."""

        async def poll() -> bool:
            return await self.get(resource, name) is None

        await wait_until(poll, seconds, f"{resource.kind} {name} is deleted")

    async def wait_watching(self, seconds: float = 3 * READY_TIMEOUT) -> None:
        """Wait until the operator watches all its resources."""

        async def poll() -> bool:
            return len({stream.call.resource for stream in self.proxy.open_watches()}) == WATCHED

        await wait_until(poll, seconds, "the operator watches all resources")

    def check(self, condition: object, message: str) -> None:
        """Raise FailedError with this message unless the condition is true."""
        if not condition:
            raise FailedError(message)


async def wait_until(
    condition: Callable[[], Awaitable[Any]], seconds: float, what: str | Callable[[], str], poll: float = POLL
) -> Any:
    """Poll until the result is true, and return it. Raises TimedOutError after `seconds`.

    `what`: the awaited state, or a function that returns the whole message of the error. `poll`: seconds between two
    attempts; later a twentieth of the time waited so far, at most MAX_POLL.
    """
    started = time.monotonic()
    while True:
        found = await condition()
        if found:
            return found
        waited = time.monotonic() - started
        if waited > seconds * TIMEOUT_FACTOR:
            raise TimedOutError(what() if callable(what) else f"timed out after {seconds:g} s waiting until {what}")
        await asyncio.sleep(max(poll, min(waited / 20, MAX_POLL)))


async def wait_for(event: Awaitable[Any], seconds: float, what: str) -> None:
    """Await with a timeout. Raises TimedOutError after `seconds`."""
    try:
        await asyncio.wait_for(event, seconds * TIMEOUT_FACTOR)
    except TimeoutError:
        raise TimedOutError(f"timed out after {seconds:g} s waiting until {what}") from None


async def wait_until_injected(active: ActiveRule, seconds: float) -> None:
    """Wait until a rule has been applied as often as it says. Raises TimedOutError after `seconds`."""
    await wait_for(active.done.wait(), seconds, f"the fault is injected into {active.rule.what}")


@dataclass(frozen=True)
class Plane:
    """The control plane and the settings that all cases of a run share."""

    connection: Config
    client: ApiClient
    pair: KeyPair
    directory: Path

    @asynccontextmanager
    async def sandbox(self, name: str, settings: Settings) -> AsyncGenerator[Sandbox]:
        """Create a sandbox. Its operator is not started yet. The namespace is deleted with the control plane."""
        await create_namespace(self.client, name)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(bound_account(self.client, name))
            user = user_of(name)
            own_proxy, address = await stack.enter_async_context(self.proxy(user))
            operator = self.operator(name, address, settings)
            own_proxy.kill = operator.kill
            record = self.directory / f"{name}.requests"
            stack.callback(lambda: record.write_text("\n".join(map(str, own_proxy.requests.entries))))
            await stack.enter_async_context(supervised(operator))
            # Namespaces are deleted with the control plane; objects immediately, because the number of pods is limited.
            stack.push_async_callback(self._clear, name)
            yield Sandbox(name, self.client, own_proxy, operator, settings, address)

    @asynccontextmanager
    async def proxy(self, user: str) -> AsyncGenerator[tuple[Interception, str]]:
        """The way of one operator to the API server: its proxy, and the address of that."""
        async with proxy(self.connection, self.pair, user) as found:
            yield found

    def operator(self, namespace: str, address: str, settings: Settings, name: str = "operator") -> Operator:
        """An operator that works in one namespace, through a proxy."""
        config = kubeconfig(self.directory / f"{namespace}.{name}.kubeconfig", address, self.pair.ca)
        log = self.directory / f"{namespace}.{name}.log"
        environment = {"KUBECONFIG": str(config), "POD_NAMESPACE": namespace, **settings.environment}
        return Operator(arguments_of(namespace, settings), environment, settings.sources, log)

    async def _clear(self, namespace: str) -> None:
        for resource in (MEMCACHEDPROXIES, MEMCACHEDS, APPSERVICES):
            await self.client.request("DELETE", resource.path(namespace))


async def create_namespace(client: ApiClient, name: str) -> None:
    """Create a namespace in which the operator has exactly the permissions of config/rbac."""
    await client.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for role, rules in ROLES.items():
        await grant(client, name, role, rules)


def arguments_of(namespace: str, settings: Settings) -> list[str]:
    """The options of an operator that works in one namespace."""
    return [
        f"--watch-namespaces={namespace}",
        f"--sync-period={settings.sync_period:g}",
        f"--max-retry-delay={settings.max_retry_delay:g}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        *settings.arguments,
    ]


def user_of(namespace: str) -> str:
    """User name of a sandbox's operator at the API server."""
    return f"system:serviceaccount:{namespace}:{ACCOUNT}"


async def grant(client: ApiClient, namespace: str, role: str, rules: list[Object], account: str = "") -> None:
    """Create a Role with these rules, and bind it to the operator's account: by default the one of the namespace."""
    base = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    await client.request("POST", f"{base}/roles", {"metadata": {"name": role}, "rules": rules})
    binding = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": account or namespace}],
    }
    await client.request("POST", f"{base}/rolebindings", binding)
