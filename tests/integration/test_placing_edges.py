"""Rules that repeat those of Kubernetes: the CRD, and the API server for the children, deny what admission denies."""

import asyncio
import re
from collections.abc import Iterator
from ipaddress import ip_network

import pytest

from faults.workloads import new_object
from integration.control_plane import ControlPlane, would_create
from memcached_api.images import Images
from memcached_api.memcached.resolved import ports
from memcached_api.memcached.types import decode_spec, needs_agent
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, NETWORK_POLICIES, SERVICES, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.desired.deployment import deployment
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT, named_ports
from memcached_operator.memcached.desired.service import services
from memcached_operator.parts.network_policy import network_policy
from memcached_operator.parts.workloads.children import inheriting
from support.kubernetes import LABEL_KEYS, STRICT_RANGES
from support.placing_edges import EDGES, Spec

pytestmark = pytest.mark.server

AT_ONCE = 10
"""Objects that are checked at the same time."""


def children(namespace: str, given: Spec) -> Iterator[tuple[Resource, Object]]:
    """The children of a spec, also of one that admission denies."""
    cr = new_object(MEMCACHEDS, namespace, "cache", given)
    spec = decode_spec(cr)
    found = [(DEPLOYMENTS, deployment(cr, spec, Images("example.com/memcached:1")))]
    found += [(SERVICES, each) for each in services(cr, spec, ports(spec))]
    if spec.network_policy:
        opened = named_ports(ports(spec)).values()
        policy = network_policy(cr, APP_NAME, COMPONENT, opened, spec.network_policy, metrics=needs_agent(spec))
        found.append((NETWORK_POLICIES, policy))
    resources = [resource for resource, _ in found]
    yield from zip(resources, inheriting([child for _, child in found], spec.inherited_metadata), strict=True)


async def denied(client: ApiClient, resource: Resource, obj: Object) -> bool:
    """Whether the API server denies an object as invalid."""
    try:
        await would_create(client, resource, obj)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        return True
    return False


def has_strict_ranges(spec: Spec) -> bool:
    """Whether each range of addresses is one that all versions of Kubernetes accept in new NetworkPolicies."""
    peers: list[Object] = spec.get("networkPolicy", {}).get("from") or []
    return all(is_strict(peer["ipBlock"]["cidr"]) for peer in peers if "ipBlock" in peer)


def is_strict(cidr: str) -> bool:
    """Whether a range has no number with a leading zero, and no bits behind the prefix."""
    try:
        ip_network(cidr)
    except ValueError:
        return False
    return not re.search(r"(^|[./])0[0-9]|[0-9a-fA-F]{5}", cidr)


def test_rules_of_the_crd_deny_exactly_what_kubernetes_denies(
    plane: ControlPlane, namespace: str, version: str
) -> None:
    by_rules, by_kubernetes = set[str](), set[str]()
    limit = asyncio.Semaphore(AT_ONCE)

    async def check(client: ApiClient, name: str, spec: Spec) -> None:
        async with limit:
            if await denied(client, MEMCACHEDS, new_object(MEMCACHEDS, namespace, "cache", spec)):
                by_rules.add(name)
            if any([await denied(client, *child) for child in children(namespace, spec)]):
                by_kubernetes.add(name)

    async def check_all(client: ApiClient) -> None:
        await asyncio.gather(*(check(client, name, spec) for name, (spec, _) in EDGES.items()))

    plane.call(check_all)
    expected = {name for name, (_, valid) in EDGES.items() if not valid}
    strict = {
        name for name, (spec, _) in EDGES.items() if STRICT_RANGES.applies(version) and not has_strict_ranges(spec)
    }
    ignored = {name for name in expected if not LABEL_KEYS.applies(version) and "atchLabelKeys" in str(EDGES[name])}
    assert by_kubernetes ^ ((expected | strict) - ignored) == set()
    assert by_rules ^ expected == set()
