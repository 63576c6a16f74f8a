"""An installation whose operator issues the webhook certificate: its objects, a simulated kubelet, and clients."""

import asyncio
import base64
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import yaml

from faults.process import ROOT, supervised
from faults.registration import configurations, created, dry_run_create, error_of, resource_of
from faults.sandbox import RBAC, Plane, Sandbox, grant, wait_until
from faults.webhook import KINDS, Files, Webhook, webhook
from faults.workloads import IMAGE
from memcached_operator.certificates import issuer
from memcached_operator.certificates.pki import LIFETIME, KeyPair, issue, load_bundle, renewal_reason
from memcached_operator.kube.client import JSON_PATCH, ApiError
from memcached_operator.kube.resource import SECRETS, SERVICES, Key, Object
from support.ports import free_port

PREFIX = "memcached-operator-"
"""Prefix of all names in config/default."""
SECRET, SERVICE = f"{PREFIX}webhook-cert", f"{PREFIX}webhook-service"
KUBELET_PERIOD = 0.5
"""Seconds between two reads of the Secret by the simulated kubelet."""
KUBELET_DELAY = 1.0
"""Seconds until it has written a changed Secret: 60 to 90 in a cluster."""
PACE = 0.2
"""Seconds between two requests of a client."""
EVENTS_DELAY = 1.0
"""Seconds by which a connecting client may use an old CA bundle, as an API server does."""
CONNECT_TIMEOUT = 10.0
"""Seconds for a connection, on a very busy machine."""
UNTRUSTED = (
    "unknown authority",
    "certificate verify failed",
    "connection failed: Empty certificate data",
    "no start line",
)
"""What the API server and the connecting client report for a certificate that they do not trust."""


@dataclass
class Clients:
    """Clients that create objects continuously, and a TLS client like an API server that has just started.

    `failed`: time and error of each request or connection that failed.
    """

    sandbox: Sandbox
    names: issuer.WebhookNames
    port: int
    created: int = 0
    connected: int = 0
    failed: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    async def create(self) -> None:
        """Create objects of both kinds with dryRun: admission is called as for others. Until cancelled."""
        while True:
            for kind in KINDS:
                error = await error_of(
                    lambda kind=kind: dry_run_create(self.sandbox, resource_of(kind), {"image": IMAGE})
                )
                if error is not None:
                    self.failed.append((time.monotonic(), str(error)))
                self.created += 1
                await asyncio.sleep(PACE)

    async def connect(self) -> None:
        """Connect with the CA bundle of each webhook, read a moment before. Until cancelled.

        The API server reuses its connections, and would notice an untrusted certificate late. An untrusted certificate
        counts only if the bundle was read at most PROPAGATION_DELAY before: the issuer guarantees nothing for older
        ones. Any other error counts.
        """
        while True:
            read = time.monotonic()
            current = set(await bundles(self.sandbox, self.names))
            await asyncio.sleep(EVENTS_DELAY)
            for bundle in current:
                error = await self._connect(bundle)
                now = time.monotonic()
                outdated = now - read > issuer.PROPAGATION_DELAY
                if outdated and (not error or any(each in error for each in UNTRUSTED)):
                    break
                self.connected += 1
                if error:
                    self.failed.append((now, error))

    async def _connect(self, bundle: bytes) -> str:
        """Connect once; returns the error."""
        try:
            context = ssl.create_default_context(cadata=bundle.decode())
            async with asyncio.timeout(CONNECT_TIMEOUT):
                name = self.names.dns_names[0]
                _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=name)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        except (OSError, ValueError) as error:  # an empty bundle is a ValueError
            return f"connection failed: {error}"
        return ""


@dataclass
class Kubelet:
    """Writes a Secret to the files of a process, some time after a change. A deleted Secret changes no file."""

    sandbox: Sandbox
    files: Files
    delay: float
    projected: dict[str, str] = field(default_factory=dict[str, str])

    async def run(self) -> None:
        """Project the Secret, until cancelled."""
        while True:
            if await self._changed():
                await asyncio.sleep(self.delay)
                if data := await self._changed():
                    self.files.swap({name: base64.b64decode(text) for name, text in data.items()})
                    self.projected = data
            await asyncio.sleep(KUBELET_PERIOD)

    async def _changed(self) -> dict[str, str] | None:
        secret = await self.sandbox.get(SECRETS, SECRET)
        data = (secret or {}).get("data")
        return data if data != self.projected else None


def names_of(sandbox: Sandbox) -> issuer.WebhookNames:
    """The names of the installation in a sandbox."""
    names = (f"{kind}-webhook-configuration-{sandbox.namespace}" for kind in ("mutating", "validating"))
    return issuer.WebhookNames(sandbox.namespace, SECRET, SERVICE, *names)


def keys_of(names: issuer.WebhookNames) -> list[Key]:
    """The webhook configurations."""
    return [Key(issuer.MUTATING_WEBHOOKS, "", names.mutating), Key(issuer.VALIDATING_WEBHOOKS, "", names.validating)]


async def bundles(sandbox: Sandbox, names: issuer.WebhookNames) -> list[bytes]:
    """The CA bundle of each webhook."""
    found = [await sandbox.client.get(key) or {} for key in keys_of(names)]
    return [base64.b64decode(hook["clientConfig"].get("caBundle", "")) for obj in found for hook in obj["webhooks"]]


async def set_bundle(sandbox: Sandbox, key: Key, bundle: bytes) -> None:
    """Replace the CA bundles of a configuration."""
    live = await sandbox.client.get(key) or {}
    text = base64.b64encode(bundle).decode()
    patch = [
        {"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": text}
        for number in range(len(live["webhooks"]))
    ]
    await sandbox.client.patch(key, patch, JSON_PATCH)


async def stored(sandbox: Sandbox) -> KeyPair | None:
    """The pair in the Secret."""
    return issuer.key_pair_of(await sandbox.get(SECRETS, SECRET))


async def usable(sandbox: Sandbox, names: issuer.WebhookNames) -> KeyPair | None:
    """The pair in the Secret if it is valid and every CA bundle contains its CA."""
    pair = await stored(sandbox)
    if pair is None or renewal_reason(pair, names.dns_names, datetime.now(UTC)):
        return None
    (ca,) = load_bundle(pair.ca)
    return pair if all(ca in load_bundle(each) for each in await bundles(sandbox, names)) else None


def due_pair(names: issuer.WebhookNames) -> KeyPair:
    """A pair that must be renewed: more than two thirds of its lifetime have passed."""
    return issue(names.dns_names, LIFETIME, datetime.now(UTC) - LIFETIME * 0.7)


async def write_secret(sandbox: Sandbox, names: issuer.WebhookNames, data: dict[str, bytes]) -> None:
    """Write the contents of the Secret as another client."""
    patch = {"data": {name: base64.b64encode(content).decode() for name, content in data.items()}}
    await sandbox.client.patch(Key(SECRETS, sandbox.namespace, names.secret), patch)


@asynccontextmanager
async def installation(sandbox: Sandbox, plane: Plane, first: KeyPair | None, *arguments: str) -> AsyncGenerator[int]:
    """Create permissions, Service and configurations; with `first`, also the Secret and the CA bundles of this pair.

    The sandbox's operator, which is not started, manages certificates. Yields the port of the webhooks.
    """
    names, port = names_of(sandbox), free_port()
    settings = replace(sandbox.settings, arguments=("--manage-certificates", *arguments))
    operator = plane.operator(sandbox.namespace, sandbox.address, settings, "issuing")
    sandbox.operator, sandbox.proxy.kill = operator, operator.kill
    # The webhook configurations are not namespaced, and their names are fixed: each case has its own.
    sandbox.proxy.renamed = {
        f"{PREFIX}{key.name.removesuffix(f'-{sandbox.namespace}')}": key.name for key in keys_of(names)
    }
    ca = base64.b64encode(first.ca).decode() if first else ""

    def client_config(service: Object) -> Object:
        reference = {"namespace": sandbox.namespace, "name": SERVICE, "path": service["path"], "port": port}
        return {"service": reference} | ({"caBundle": ca} if ca else {})

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_permitted(sandbox))
        await _create_service(sandbox, port)
        await stack.enter_async_context(created(sandbox, configurations(sandbox, client_config)))
        if first:
            await sandbox.client.request("POST", SECRETS.path(sandbox.namespace), issuer.secret_of(names, first))
        await stack.enter_async_context(supervised(operator))
        yield port


async def _create_service(sandbox: Sandbox, port: int) -> None:
    """Create a Service that leads to the admission process. The API server verifies the Service's DNS name."""
    spec: Object = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    body: Object = {"metadata": {"name": SERVICE}, "spec": spec}
    await sandbox.client.request("POST", SERVICES.path(sandbox.namespace), body)


@asynccontextmanager
async def _permitted(sandbox: Sandbox) -> AsyncGenerator[None]:
    """Grant the permissions of config/certificates."""
    documents = list(yaml.safe_load_all((ROOT / "config/certificates/role.yaml").read_text()))
    role, cluster_role = (next(each for each in documents if each["kind"] == kind) for kind in ("Role", "ClusterRole"))
    await grant(sandbox.client, sandbox.namespace, "certificates-role", role["rules"])
    for rule in cluster_role["rules"]:
        rule["resourceNames"] = [sandbox.proxy.renamed[name] for name in rule["resourceNames"]]
    name, base = f"certificates-{sandbox.namespace}", f"/apis/{RBAC}/v1"
    binding: dict[str, Any] = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": sandbox.namespace}],
    }
    try:
        await sandbox.client.request(
            "POST", f"{base}/clusterroles", {"metadata": {"name": name}, "rules": cluster_role["rules"]}
        )
        await sandbox.client.request("POST", f"{base}/clusterrolebindings", binding)
        yield
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            await error_of(lambda kind=kind: sandbox.client.request("DELETE", f"{base}/{kind}/{name}"))


@asynccontextmanager
async def mounted(sandbox: Sandbox, port: int, seconds: float) -> AsyncGenerator[Webhook]:
    """Start the admission process as soon as the Secret exists, as a kubelet does."""
    first = await wait_until(lambda: stored(sandbox), seconds, "the Secret has a pair")
    async with webhook(sandbox, first, port) as admission:
        yield admission


async def denial(sandbox: Sandbox) -> ApiError | None:
    """Why an object of one of the kinds cannot be created; None if both are accepted."""
    errors = [
        await error_of(lambda kind=kind: dry_run_create(sandbox, resource_of(kind), {"image": IMAGE})) for kind in KINDS
    ]
    return next(filter(None, errors), None)


async def wait_until_accepted(sandbox: Sandbox, seconds: float) -> None:
    """Wait until objects of both kinds can be created. Raises TimedOutError with the last error."""
    error: ApiError | None = None

    async def poll() -> bool:
        nonlocal error
        error = await denial(sandbox)
        return error is None

    await wait_until(
        poll, seconds, lambda: f"timed out after {seconds:g} s waiting until objects are accepted: {error}"
    )
