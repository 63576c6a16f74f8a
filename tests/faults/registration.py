"""Our webhooks at the API server, for the objects of one namespace only."""

import base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from faults.process import ROOT
from faults.stage import Stage, until
from faults.webhook import KINDS, PATHS, Webhook
from faults.workloads import IMAGE, custom
from memcached_api.kinds import Kind
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object, Resource

MANIFESTS = ROOT / "config/webhook/manifests.yaml"
IN_EFFECT = 30.0
"""Seconds for the API server to take up a configuration, on a busy machine: 0.1 to 1 on an idle one."""


def resource_of(kind: Kind[Any]) -> Resource:
    """A kind as the API server's paths have it."""
    return Resource(kind.group, kind.versions[0], kind.name, kind.plural)


@dataclass
class Registration:
    """The two configurations of one case."""

    stage: Stage
    configurations: list[Object]

    async def trust(self, url: str, bundle: bytes) -> None:
        """Have the API server ask at an address, and trust these CAs only; none: those of its machine."""
        text = base64.b64encode(bundle).decode()
        for obj in self.configurations:
            for webhook in obj["webhooks"]:
                webhook["clientConfig"]["url"] = f"{url}{_path_of(webhook)}"
                webhook["clientConfig"]["caBundle"] = text
            patch = {"webhooks": obj["webhooks"]}
            merge = "application/merge-patch+json"
            await self.stage.client.request("PATCH", f"{_path(obj)}/{obj['metadata']['name']}", patch, merge)


async def would_be(stage: Stage, resource: Resource, spec: Mapping[str, Any], name: str = "asked") -> Object:
    """What would be stored. Raises ApiError where nothing would."""
    obj = custom(resource, stage.namespace, name, spec)
    return await stage.client.request("POST", resource.path(stage.namespace), obj, params={"dryRun": "All"})


async def complaint(work: Callable[[], Awaitable[Any]]) -> ApiError | None:
    """What the API server says against something; None where it does it."""
    try:
        await work()
    except ApiError as error:
        return error
    return None


@asynccontextmanager
async def registered(stage: Stage, url: str, bundle: bytes, behind: Webhook) -> AsyncGenerator[Registration]:
    """Have the API server ask at an address, as config/webhook says; wait until it does."""
    found = [obj for obj in yaml.safe_load_all(MANIFESTS.read_text()) if obj["kind"].endswith("WebhookConfiguration")]
    text = base64.b64encode(bundle).decode()
    for obj in found:
        obj["metadata"]["name"] += f"-{stage.namespace}"
        for webhook in obj["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"{url}{path}", "caBundle": text}
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    try:
        for obj in found:
            await stage.client.request("POST", _path(obj), obj)
        await until(lambda: _all_asked(stage, behind), IN_EFFECT, "the API server asks admission")
        yield Registration(stage, found)
    finally:
        for obj in found:
            await complaint(lambda obj=obj: stage.client.request("DELETE", f"{_path(obj)}/{obj['metadata']['name']}"))


async def _all_asked(stage: Stage, behind: Webhook) -> bool:
    """Whether each of the four paths has been asked about something."""
    for kind in KINDS:
        await complaint(lambda kind=kind: would_be(stage, resource_of(kind), {"image": IMAGE}))
    counts = await behind.metrics()
    series = [f'controller_runtime_webhook_requests_total{{code="200",webhook="{path}"}}' for path in PATHS]
    return all(counts.get(each) for each in series)


def _path_of(webhook: Object) -> str:
    return "/" + webhook["clientConfig"]["url"].split("/", 3)[3]


def _path(obj: Object) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/{obj['kind'].lower()}s"
