"""The ConfigMap with the addresses of a Memcached with `identity: Stable`, for its clients."""

from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import CONFIG_MAPS, Object
from memcached_operator.memcached.desired.addresses import fixed_servers, host, servers
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT
from memcached_operator.workloads import children


def connection_name(cr: Object) -> str:
    """The name of the ConfigMap."""
    return f"{cr['metadata']['name']}-connection"


def connection(cr: Object, spec: MemcachedSpec, domain: str, *, fixed: bool) -> Object:
    """Build the ConfigMap: variables for the environment of clients, and files with one server per line.

    `domain`: the DNS domain of the cluster. `fixed`: whether the addresses of the slots' Services are listed.
    """
    data = {
        "MEMCACHED_HOST": host(cr, domain),
        "MEMCACHED_PORT": str(spec.container_port),
        **_listed("MEMCACHED_SERVERS", "servers", servers(cr, spec, domain)),
    }
    if fixed:
        data |= _listed("MEMCACHED_FIXED_SERVERS", "fixed-servers", fixed_servers(cr, spec, domain))
    return children.child(CONFIG_MAPS, cr, APP_NAME, COMPONENT, name=connection_name(cr), data=data)


def _listed(variable: str, file: str, found: list[str]) -> dict[str, str]:
    return {variable: ",".join(found), file: "".join(f"{each}\n" for each in found)}
