"""Webhook configurations at the API server, for the objects of one namespace only."""

import base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from faults.process import ROOT
from faults.sandbox import Sandbox, wait_until
from faults.webhook import KINDS, PATHS, Webhook
from faults.workloads import IMAGE, new_object
from memcached_api.kind import Kind
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object, Resource

MANIFESTS = ROOT / "config/webhook/manifests.yaml"
REGISTRATION_TIMEOUT = 30.0
"""Seconds until a configuration is in effect, on a busy machine: 0.1 to 1 on an idle one."""

VALID: dict[str, Object] = {
    "Memcached": {"size": 1},
    "AppService": {"image": IMAGE, "ports": [{"port": 80}, {"port": 81}]},
}
"""By kind, a valid spec without the fields that admission sets."""


DEFAULTED = {"Memcached": ("image", "podTemplate", "podDisruptionBudget", "rollout"), "AppService": ()}
"""By kind, the fields that only the webhook sets in a new object."""


def check_defaults(sandbox: Sandbox, obj: Object) -> None:
    """Check that an object of a spec in VALID has the webhook's defaults: it was not stored without a review."""
    missing = [name for name in DEFAULTED[obj["kind"]] if not obj["spec"].get(name)]
    sandbox.check(not missing, f"stored without the defaults {missing}: {obj['spec']}")


def resource_of(kind: Kind[Any]) -> Resource:
    """The resource of a kind, as in the API server's paths."""
    return Resource(kind.group, kind.versions[0], kind.name, kind.plural)


@dataclass
class Registration:
    """The two webhook configurations of one case."""

    sandbox: Sandbox
    configurations: list[Object]

    async def set_client_config(self, url: str, bundle: bytes) -> None:
        """Set URL and CA bundle of all webhooks. Without a bundle, the API server trusts the CAs of its machine."""
        text = base64.b64encode(bundle).decode()
        for obj in self.configurations:
            for webhook in obj["webhooks"]:
                webhook["clientConfig"]["url"] = f"{url}{_path_of(webhook)}"
                webhook["clientConfig"]["caBundle"] = text
            patch = {"webhooks": obj["webhooks"]}
            merge = "application/merge-patch+json"
            await self.sandbox.client.request("PATCH", f"{_path(obj)}/{obj['metadata']['name']}", patch, merge)


async def dry_run_create(
    sandbox: Sandbox, resource: Resource, spec: Mapping[str, Any], name: str = "dry-run"
) -> Object:
    """Create an object with dryRun; returns what would be stored. Raises ApiError if it is denied."""
    obj = new_object(resource, sandbox.namespace, name, spec)
    return await sandbox.client.request("POST", resource.path(sandbox.namespace), obj, params={"dryRun": "All"})


async def error_of(work: Callable[[], Awaitable[Any]]) -> ApiError | None:
    """The ApiError that `work` raises, or None."""
    try:
        await work()
    except ApiError as error:
        return error
    return None


@asynccontextmanager
async def registered(sandbox: Sandbox, url: str, bundle: bytes, admission: Webhook) -> AsyncGenerator[Registration]:
    """Register the webhooks of config/webhook with this URL, and wait until the API server calls them."""
    text = base64.b64encode(bundle).decode()
    found = configurations(sandbox, lambda service: {"url": f"{url}{service['path']}", "caBundle": text})
    async with created(sandbox, found):
        await wait_until(
            lambda: _all_called(sandbox, admission), REGISTRATION_TIMEOUT, "the API server calls the webhooks"
        )
        yield Registration(sandbox, found)


def configurations(sandbox: Sandbox, client_config: Callable[[Object], Object]) -> list[Object]:
    """The configurations of config/webhook for the objects of this sandbox only, with its namespace in their names.

    `client_config` returns the clientConfig for the `service` in the manifest.
    """
    found = [obj for obj in yaml.safe_load_all(MANIFESTS.read_text()) if obj["kind"].endswith("WebhookConfiguration")]
    for obj in found:
        obj["metadata"]["name"] += f"-{sandbox.namespace}"
        for webhook in obj["webhooks"]:
            webhook["clientConfig"] = client_config(webhook["clientConfig"]["service"])
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": sandbox.namespace}}
    return found


@asynccontextmanager
async def created(sandbox: Sandbox, found: list[Object]) -> AsyncGenerator[None]:
    """Create webhook configurations, and delete them at the end."""
    try:
        for obj in found:
            await sandbox.client.request("POST", _path(obj), obj)
        yield
    finally:
        for obj in found:
            await error_of(lambda obj=obj: sandbox.client.request("DELETE", f"{_path(obj)}/{obj['metadata']['name']}"))


async def _all_called(sandbox: Sandbox, admission: Webhook) -> bool:
    """Whether each of the four paths has received a review."""
    for kind in KINDS:
        await error_of(lambda kind=kind: dry_run_create(sandbox, resource_of(kind), {"image": IMAGE}))
    counts = await admission.metrics()
    series = [f'controller_runtime_webhook_requests_total{{code="200",webhook="{path}"}}' for path in PATHS]
    return all(counts.get(each) for each in series)


def _path_of(webhook: Object) -> str:
    return "/" + webhook["clientConfig"]["url"].split("/", 3)[3]


def _path(obj: Object) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/{obj['kind'].lower()}s"
