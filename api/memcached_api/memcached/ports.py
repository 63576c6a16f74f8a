"""The ports of memcached."""

from typing import NamedTuple

from memcached_api.memcached.types import MemcachedSpec


class Ports(NamedTuple):
    """The ports on which memcached serves clients without TLS and with TLS; at least one is set."""

    plain: int | None = None
    tls: int | None = None

    @property
    def default(self) -> int:
        """The port of clients that do not choose: without TLS while there is one."""
        port = self.plain or self.tls
        if port is None:
            raise ValueError("memcached has no port")
        return port


def ports(spec: MemcachedSpec) -> Ports:
    """The ports of a spec."""
    if spec.tls is None:
        return Ports(plain=spec.container_port)
    plain = spec.container_port if spec.tls.plaintext == "Enabled" else None
    return Ports(plain, spec.tls.port or spec.container_port)
