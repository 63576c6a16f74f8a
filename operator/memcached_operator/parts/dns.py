"""The DNS names of Services."""

from memcached_operator.kube.resource import Object

CLUSTER_DOMAIN = "cluster.local"
"""The DNS domain of most clusters. The API server does not know it, so it is an option of the controller."""


def host(cr: Object, domain: str, name: str | None = None) -> str:
    """The DNS name of a Service, by default the one with the object's name, in the cluster with this domain."""
    meta = cr["metadata"]
    return f"{name or meta['name']}.{meta['namespace']}.svc.{domain}"
