"""The kinds that the controller reconciles. The permissions in config/ follow from what they own."""

from collections.abc import Iterable
from typing import Any

from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_operator.appservice.controller import appservice
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.memcached.controller import memcached
from memcached_operator.memcachedproxy.controller import memcachedproxy
from memcached_operator.parts.dns import CLUSTER_DOMAIN


def kinds(defaults: Images, cluster_domain: str = CLUSTER_DOMAIN) -> list[ReconciledKind]:
    """Every kind that this operator reconciles.

    `defaults`: the images of objects that name none. `cluster_domain`: the DNS domain of the cluster.
    """
    return [memcached(defaults, cluster_domain), memcachedproxy(defaults, cluster_domain), appservice()]


def selected(reconciled: Iterable[ReconciledKind], wanted: Iterable[Kind[Any]]) -> list[ReconciledKind]:
    """The reconciled kinds that are wanted. Nothing of the others is read, so the operator needs no rights on them."""
    names = {(kind.group, kind.name) for kind in wanted}
    return [each for each in reconciled if (each.resource.group, each.resource.kind) in names]
