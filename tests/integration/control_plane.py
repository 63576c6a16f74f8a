"""An API server with nothing but what a test puts there.

The deployed operator works in all namespaces, with the same labels and the same field manager: beside it, a second one
could not be tested. So these tests have a control plane of their own, which is ready within seconds.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import aiohttp
import yaml

from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.config import Config, load_config
from memcached_operator.kube.resource import Key, Object, Resource
from support.audit import Audit

T = TypeVar("T")
C = TypeVar("C", bound=Client)

ROOT = Path(__file__).parents[2]
CRD_FILES = sorted((ROOT / "config/crd/bases").glob("*.yaml"))
READY = 60.0
"""Seconds for the API server to serve something new, on a busy machine."""
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
NAMESPACES = Resource("", "v1", "Namespace", "namespaces")

GUARD = "import subprocess, sys; sys.stdin.read(); sys.exit(subprocess.call(sys.argv[1:]))"
"""Runs a command when its standard input ends: when the fixture is done, or when the test run has died."""


@dataclass(frozen=True)
class ControlPlane:
    """The way to it, as the operator has it and as a test has it."""

    kubeconfig: Path
    audit_log: Path

    @property
    def connection(self) -> Config:
        """What the operator connects with."""
        with mock.patch.dict(os.environ, KUBECONFIG=str(self.kubeconfig)):
            return load_config()

    def audit(self) -> Audit:
        """The audit log from now on."""
        return Audit(self.audit_log)

    def call(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Do something as somebody who is not the operator."""

        async def run() -> T:
            there = self.connection
            connector = aiohttp.TCPConnector(ssl=there.tls)
            async with aiohttp.ClientSession(connector=connector, headers=there.headers) as session:
                return await work(Client(there, session))

        return asyncio.run(run())

    def get(self, key: Key) -> Object | None:
        """One object, or None."""
        return self.call(lambda client: client.get(key))

    def must_get(self, key: Key) -> Object:
        """One object that must exist."""
        found = self.get(key)
        assert found is not None, f"{key} does not exist"
        return found

    def create(self, resource: Resource, obj: Object) -> Object:
        """Create an object; what the API server made of it."""
        path = resource.path(obj["metadata"].get("namespace"))
        return self.call(lambda client: client.request("POST", path, obj))

    def would_create(self, resource: Resource, obj: Object) -> Object:
        """What would be stored of an object; a field that the schema does not know is an error."""
        path = resource.path(obj["metadata"].get("namespace"))
        ask = {"dryRun": "All", "fieldValidation": "Strict"}
        return self.call(lambda client: client.request("POST", path, obj, params=ask))

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


@asynccontextmanager
async def client_of(connection: Config, make: type[C] = Client) -> AsyncGenerator[C]:
    """A client as the operator has it, or a special one."""
    async with connection.session() as session:
        yield make(connection, session)


@contextmanager
def control_plane(name: str, version: str | None = None) -> Generator[ControlPlane]:
    """Start one with our CRDs; end it in any case. By default, KUBE_VERSION in the environment names its version."""
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
        done = subprocess.run([*tool, "up"], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        kubeconfig = Path(done.stdout.strip().rpartition("export KUBECONFIG=")[2])
        plane = ControlPlane(kubeconfig, kubeconfig.parent / "audit.log")
        install(plane)
        yield plane


def install(plane: ControlPlane) -> None:
    """Create our CRDs and wait until they are served."""
    for path in CRD_FILES:
        crd = yaml.safe_load(path.read_text())
        plane.create(CRDS, crd)
        served = f"/apis/{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}/{crd['spec']['names']['plural']}"
        until(lambda served=served: plane.call(lambda client: answers(client, served)))


async def answers(client: Client, path: str) -> bool:
    """Whether a path is served."""
    try:
        await client.request("GET", path)
    except ApiError:
        return False
    return True


def until(get_live: Callable[[], Any], seconds: float = READY) -> None:
    """Look until it is true."""
    deadline = time.monotonic() + seconds
    while not get_live():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.1)


async def eventually(get_live: Callable[[], Awaitable[T]], seconds: float = 30) -> T:
    """Look until it is true, while other things go on."""
    deadline = time.monotonic() + seconds
    while not (found := await get_live()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s; last: {found}"
        await asyncio.sleep(0.1)
    return found
