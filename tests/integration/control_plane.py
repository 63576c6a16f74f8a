"""Starts control planes without nodes and without an operator.

The deployed operator works in all namespaces with the same labels and the same field manager, so a second one cannot be
tested beside it. Such a control plane is ready within seconds.
"""

import asyncio
import atexit
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar
from unittest import mock

import aiohttp
import yaml

from memcached_operator.engine.runtime.threads import EventLoopThread
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.config import Config, load_config
from memcached_operator.kube.resource import POD_MONITORS, PROMETHEUS_RULES, Key, Object, Resource
from support import programs
from support.audit import Audit
from support.monitors import monitor_crd
from support.waiting import BUILD, COMMAND, READY

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
CRD_FILES = sorted((ROOT / "config/crd/bases").glob("*.yaml"))
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
NAMESPACES = Resource("", "v1", "Namespace", "namespaces")

CONTROLLERS = ("controller-manager", "scheduler", "kwok")
"""The components that a control plane can do without, in the order in which they start."""

GUARD = "import subprocess, sys; sys.stdin.read(); sys.exit(subprocess.call(sys.argv[1:]))"
"""Runs a command when its standard input is closed: when the fixture ends or the test process has died."""


@dataclass(frozen=True)
class ControlPlane:
    """Access to a control plane, for the operator and for tests."""

    kubeconfig: Path
    audit_log: Path

    @property
    def connection(self) -> Config:
        """The connection that the operator uses."""
        with mock.patch.dict(os.environ, KUBECONFIG=str(self.kubeconfig)):
            return load_config()

    def audit(self) -> Audit:
        """The audit log from now on."""
        return Audit(self.audit_log)

    def call(self, work: Callable[[ApiClient], Awaitable[T]]) -> T:
        """Run requests with the default user agent, not the operator's, over connections that are kept."""

        async def run() -> T:
            return await work(_CONNECTIONS.client(self))

        return _CONNECTIONS.run(run())

    def get(self, key: Key) -> Object | None:
        """One object, or None."""
        return self.call(lambda client: client.get(key))

    def must_get(self, key: Key) -> Object:
        """One object that must exist."""
        found = self.get(key)
        assert found is not None, f"{key} does not exist"
        return found

    def create(self, resource: Resource, obj: Object) -> Object:
        """Create an object; return it as stored."""
        path = resource.path(obj["metadata"].get("namespace"))
        return self.call(lambda client: client.request("POST", path, obj))

    def would_create(self, resource: Resource, obj: Object) -> Object:
        """Create an object with a dry run and return it; unknown fields are an error."""
        return self.call(lambda client: would_create(client, resource, obj))

    def rejects(self, resource: Resource, obj: Object) -> bool:
        """Whether an object is rejected; tried with a generated name, as its own may exist."""
        meta = {"namespace": obj["metadata"]["namespace"], "generateName": obj["metadata"]["name"]}
        try:
            self.would_create(resource, {**obj, "metadata": meta})
        except ApiError:
            return True
        return False

    def change(self, key: Key, patch: Object) -> Object:
        """Merge a patch into an object."""
        path = key.resource.path(key.namespace, key.name)
        merge = "application/merge-patch+json"
        return self.call(lambda client: client.request("PATCH", path, patch, merge))

    def delete(self, key: Key, propagation: str = "Background") -> None:
        """Delete an object."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        path = key.resource.path(key.namespace, key.name)
        self.call(lambda client: client.request("DELETE", path, options))


class _Connections:
    """The connections of this process, which its thread keeps: a new one for each request takes 50 ms."""

    def __init__(self) -> None:
        self._clients: dict[Path, tuple[ApiClient, aiohttp.ClientSession]] = {}

    @cached_property
    def _thread(self) -> EventLoopThread:
        thread = EventLoopThread("requests of tests")
        asyncio.run(AsyncExitStack().enter_async_context(thread))  # it ends with the process
        atexit.register(self.close)
        return thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the result of a coroutine that runs in the thread; it ends with the wait."""
        return asyncio.run(asyncio.wait_for(self._thread.run(work), COMMAND))

    def client(self, plane: ControlPlane) -> ApiClient:
        """The client for a kubeconfig. Only within the thread."""
        if plane.kubeconfig not in self._clients:
            config = plane.connection
            connector = aiohttp.TCPConnector(ssl=config.tls, keepalive_timeout=KEPT)
            session = aiohttp.ClientSession(connector=connector, headers=config.headers)
            self._clients[plane.kubeconfig] = ApiClient(config, session), session
        return self._clients[plane.kubeconfig][0]

    def close(self, kubeconfig: Path | None = None) -> None:
        """Close the connections of a control plane that has ended, whose name another one may get, or all."""
        self.run(self._close([kubeconfig] if kubeconfig else list(self._clients)))

    async def _close(self, kubeconfigs: list[Path]) -> None:
        for each in kubeconfigs:
            if each in self._clients:
                await self._clients.pop(each)[1].close()


_CONNECTIONS: Final = _Connections()
KEPT: Final = 5.0
"""Seconds for which an unused connection is kept."""


@asynccontextmanager
async def client_of(connection: Config) -> AsyncGenerator[ApiClient]:
    """A client like the operator's."""
    async with connection.session() as session:
        yield ApiClient(connection, session)


@contextmanager
def control_plane(name: str, version: str | None = None) -> Generator[ControlPlane]:
    """Run a control plane with our CRDs until the block ends. `version` defaults to KUBE_VERSION of the environment."""
    tool = [sys.executable, "-m", "cluster"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), "CLUSTER": "control-plane", "CLUSTER_NAME": name}
    env.pop("KUBECONFIG", None)
    env |= {"KUBE_VERSION": version} if version else {}
    guard = subprocess.Popen(
        [sys.executable, "-c", GUARD, *tool, "down"],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        start_new_session=True,
    )
    with guard:
        done = programs.run([*tool, "up"], env=env, timeout=BUILD)
        assert done.returncode == 0, done.stderr
        kubeconfig = Path(done.stdout.strip().rpartition("export KUBECONFIG=")[2])
        plane = ControlPlane(kubeconfig, kubeconfig.parent / "audit.log")
        try:
            install(plane)
            yield plane
        finally:
            _CONNECTIONS.close(kubeconfig)


@contextmanager
def without_controllers(plane: ControlPlane) -> Generator[None]:
    """Stop all controllers during the block: only the API server's clients write."""
    for name in reversed(CONTROLLERS):
        _control(plane, "stop", name)
    try:
        yield
    finally:
        for name in CONTROLLERS:
            _control(plane, "start", name)


def _control(plane: ControlPlane, command: str, component: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), "CLUSTER_NAME": plane.kubeconfig.parent.name}
    env.pop("KUBECONFIG", None)
    programs.output([sys.executable, "-m", "cluster", command, component], env=env)


def install(plane: ControlPlane) -> None:
    """Create our CRDs, and those of PodMonitors and PrometheusRules, and wait until they are served."""
    crds = [yaml.safe_load(path.read_text()) for path in CRD_FILES]
    for crd in [*crds, *map(monitor_crd, (POD_MONITORS, PROMETHEUS_RULES))]:
        plane.create(CRDS, crd)
        served = f"/apis/{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}/{crd['spec']['names']['plural']}"
        until(lambda served=served: plane.call(lambda client: is_served(client, served)))


async def is_served(client: ApiClient, path: str) -> bool:
    """Whether a path is served."""
    try:
        await client.request("GET", path)
    except ApiError:
        return False
    return True


def until(condition: Callable[[], Any], seconds: float = READY) -> None:
    """Wait until a condition is true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.1)


async def eventually(condition: Callable[[], Awaitable[T]], seconds: float = READY) -> T:
    """Wait, without blocking the event loop, until a condition returns a true value; return the value."""
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s; last: {found}"
        await asyncio.sleep(0.1)
    return found


async def would_create(client: ApiClient, resource: Resource, obj: Object) -> Object:
    """Create an object with a dry run and return it; unknown fields are an error."""
    params = {"dryRun": "All", "fieldValidation": "Strict"}
    return await client.request("POST", resource.path(obj["metadata"].get("namespace")), obj, params=params)


async def create_as_user(client: ApiClient, resource: Resource, obj: Object) -> Object:
    """Create an object with kubectl's field manager, also with the operator's client; return it as stored."""
    params = {"fieldManager": "kubectl-create"}
    return await client.request("POST", resource.path(obj["metadata"].get("namespace")), obj, params=params)
