"""Lists in one piece."""

from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import Object, Resource


async def listed(
    client: ApiClient, resource: Resource, namespace: str | None, selector: str = ""
) -> tuple[list[Object], str]:
    """All objects of a resource, and the resourceVersion of the list. Raises ApiError."""
    found: list[Object] = []
    version = ""
    async for page in client.list(resource, namespace, selector):
        found += page.items
        version = page.version
    return found, version
