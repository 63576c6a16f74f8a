"""The ConfigMap with the addresses of a Memcached with `identity: Stable`, for its clients."""

from memcached_api.memcached.resolved import Ports
from memcached_operator.kube.resource import CONFIG_MAPS, Object
from memcached_operator.memcached.addresses import CONNECTION_SUFFIX, fixed_servers, servers
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT
from memcached_operator.parts.dns import host
from memcached_operator.parts.workloads import children


def connection_name(cr: Object) -> str:
    """The name of the ConfigMap."""
    return f"{cr['metadata']['name']}{CONNECTION_SUFFIX}"


def connection(cr: Object, size: int, ports: Ports, domain: str, *, with_addresses: bool) -> Object:
    """Build the ConfigMap: variables for the environment of clients, and files with one server per line.

    With TLS, those for clients with TLS are added. `size`: the number of slots. `domain`: the DNS domain of the
    cluster. `with_addresses`: whether the addresses of the slots' own Services are listed.
    """

    def addresses(port: int, prefix: str) -> dict[str, str]:
        listed = _listed(prefix, "servers", servers(cr, size, port, domain))
        if with_addresses:
            listed |= _listed(prefix, "fixed-servers", fixed_servers(cr, size, port, domain))
        return listed

    data = {
        "MEMCACHED_HOST": host(cr, domain),
        "MEMCACHED_PORT": str(ports.default),
        **addresses(ports.default, ""),
    }
    if ports.tls is not None:
        data |= {"MEMCACHED_TLS": "true", "MEMCACHED_TLS_PORT": str(ports.tls), **addresses(ports.tls, "tls-")}
    return children.child(CONFIG_MAPS, cr, APP_NAME, COMPONENT, name=connection_name(cr), data=data)


def _listed(prefix: str, kind: str, addresses: list[str]) -> dict[str, str]:
    """The variable `MEMCACHED_TLS_SERVERS` and the file `tls-servers`, for the prefix `tls-` and the kind `servers`."""
    file = f"{prefix}{kind}"
    variable = f"MEMCACHED_{file.upper().replace('-', '_')}"
    return {variable: ",".join(addresses), file: "".join(f"{address}\n" for address in addresses)}
