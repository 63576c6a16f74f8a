"""Objects in an API server that violate its rules, as if they had been stored before these rules."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import yaml

from faults.process import ROOT
from faults.registration import error_of, resource_of
from faults.sandbox import Sandbox, wait_until
from faults.workloads import new_object
from memcached_api.kind import Kind
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object, Resource

CRDS: Final = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
UNCHECKED: Final = "v0"
"""The version without rules."""
SERVED_TIMEOUT: Final = 60.0
"""Seconds until the API server serves a new resource, on a busy machine: 1 to 3 on an idle one."""


def without_rules(crd: Object) -> Object:
    """A copy of a CustomResourceDefinition, or a part of it, without CEL rules."""

    def plain(part: Object) -> Object:
        return {key: value for key, value in part.items() if key != "x-kubernetes-validations"}

    return json.loads(json.dumps(crd), object_hook=plain)


@asynccontextmanager
async def unchecked_version(sandbox: Sandbox, kind: Kind[Any]) -> AsyncGenerator[Resource]:
    """Serve a kind in a group of its own, with the rules and as version UNCHECKED; yield the resource with the rules.

    An update of an object that was created in version UNCHECKED is checked as if it had been stored before the rules.
    """
    crd = _definition(kind, f"{sandbox.namespace}.example.com")
    resource = resource_of(kind)._replace(group=crd["spec"]["group"])

    async def served() -> bool:
        paths = [each.path(sandbox.namespace) for each in (resource, unchecked(resource))]
        return not any([await error_of(lambda path=path: sandbox.client.request("GET", path)) for path in paths])

    await sandbox.client.request("POST", CRDS.path(), crd)
    try:
        await wait_until(served, SERVED_TIMEOUT, f"{crd['metadata']['name']} is served")
        yield resource
    finally:
        await sandbox.client.request("DELETE", CRDS.path(None, crd["metadata"]["name"]))


def _definition(kind: Kind[Any], group: str) -> Object:
    path = ROOT / f"config/crd/bases/{kind.group}_{kind.plural}.yaml"
    crd = yaml.safe_load(path.read_text().replace(kind.group, group))
    (checked,) = (version for version in crd["spec"]["versions"] if version["storage"])
    crd["spec"]["versions"] = [checked, without_rules(checked) | {"name": UNCHECKED, "storage": False}]
    return crd


def unchecked(resource: Resource) -> Resource:
    """The resource in version UNCHECKED."""
    return resource._replace(version=UNCHECKED)


async def store(sandbox: Sandbox, resource: Resource, name: str, spec: Object) -> Object:
    """Create an object without checking the rules; return it as stored. Raises ApiError if the schema denies it."""
    version = unchecked(resource)
    obj = new_object(version, sandbox.namespace, name, spec)
    return await sandbox.client.request("POST", version.path(sandbox.namespace), obj)


async def update_error(sandbox: Sandbox, resource: Resource, stored: Object, spec: Object) -> ApiError | None:
    """The error of an update of a stored object to this spec; it is a dry run."""
    name = stored["metadata"]["name"]
    body = {**stored, "apiVersion": resource.api_version, "spec": spec}
    path, params = resource.path(sandbox.namespace, name), {"dryRun": "All"}
    return await error_of(lambda: sandbox.client.request("PUT", path, body, params=params))
