"""The admission policies of config/, bound to the operator's account in each sandbox. All cases must pass with them."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import Object
from support import policies

ACCOUNT = "operator"
"""Name of the operator's ServiceAccount in each sandbox."""


async def install_policies(client: ApiClient) -> None:
    """Install the policies, without bindings. They are deleted with the control plane."""
    for policy in policies.policies():
        await client.request("POST", policies.POLICIES, policy)


@asynccontextmanager
async def bound_account(client: ApiClient, namespace: str) -> AsyncGenerator[None]:
    """Create the operator's account and bind each policy to it. The bindings are removed at the end of the case."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await client.request("POST", path, {"metadata": {"name": ACCOUNT}})
    async with AsyncExitStack() as stack:
        for binding in policies.bindings(namespace, ACCOUNT):
            await _create_temporarily(stack, client, policies.BINDINGS, binding)
        yield


async def _create_temporarily(stack: AsyncExitStack, client: ApiClient, path: str, obj: Object) -> None:
    await client.request("POST", path, obj)
    stack.push_async_callback(client.request, "DELETE", f"{path}/{obj['metadata']['name']}")
