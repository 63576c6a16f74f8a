"""The admission policies of config/, bound to the operator of each stage: with them every case must pass."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import Object
from support import policies

ACCOUNT = "operator"
"""Name of the ServiceAccount that the operator of a stage is to the API server."""


@asynccontextmanager
async def policies_in_place(client: Client) -> AsyncGenerator[None]:
    """The policies, bound to nobody yet; they are removed at the end of the run."""
    async with AsyncExitStack() as stack:
        for policy in policies.policies():
            await _kept(stack, client, policies.POLICIES, policy)
        yield


@asynccontextmanager
async def bound(client: Client, namespace: str) -> AsyncGenerator[None]:
    """The account of a stage, and each policy bound to it; the bindings are removed at the end of the case."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await client.request("POST", path, {"metadata": {"name": ACCOUNT}})
    async with AsyncExitStack() as stack:
        for binding in policies.bindings(namespace, ACCOUNT):
            await _kept(stack, client, policies.BINDINGS, binding)
        yield


async def _kept(stack: AsyncExitStack, client: Client, path: str, obj: Object) -> None:
    await client.request("POST", path, obj)
    stack.push_async_callback(client.request, "DELETE", f"{path}/{obj['metadata']['name']}")
