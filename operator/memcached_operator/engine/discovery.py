"""Finds out what the API server serves, and what the cluster can do with running pods."""

import re
from typing import Any

from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import PODS, Resource
from memcached_operator.world.snapshot import Resize

LOWERS_LIMITS = 34
"""The minor version of Kubernetes from which memory limits of running pods can be lowered."""


async def discover_resize(client: ApiClient) -> Resize:
    """The changes of requests and limits of running pods that the cluster supports. Raises ApiError."""
    served = await client.request("GET", f"/api/{PODS.version}")
    if not any(resource.get("name") == f"{PODS.plural}/resize" for resource in served.get("resources") or ()):
        return Resize.NONE
    return Resize.ANY if _minor(await client.request("GET", "/version")) >= LOWERS_LIMITS else Resize.RAISE


async def is_served(client: ApiClient, resource: Resource) -> bool:
    """Whether the API server serves a resource. Raises ApiError if its discovery does not say so."""
    group = f"/apis/{resource.group}" if resource.group else "/api"
    try:
        served = await client.request("GET", f"{group}/{resource.version}")
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return any(each.get("name") == resource.plural for each in served.get("resources") or ())


def _minor(version: dict[str, Any]) -> int:
    """The minor version, such as 33 of `33+`; 0 if it has another form."""
    number = re.match(r"[0-9]{1,4}", str(version.get("minor", "")))
    return int(number[0]) if number and version.get("major") == "1" else 0
