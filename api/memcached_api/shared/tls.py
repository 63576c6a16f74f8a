"""The part of a spec about TLS for clients."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, field

from memcached_api.effects import REPLACES
from memcached_api.validation.common_rules import MAX_SUBDOMAIN_LENGTH

LOOPBACK_PORT: Final = 11210
"""The port on which memcached serves the agent without TLS, at 127.0.0.1 only. Without TLS, it is not used."""

MIN_PORT: Final = 1024  # memcached does not run as root, and only root can bind lower ports

SecretName = Annotated[str, Meta(max_length=MAX_SUBDOMAIN_LENGTH)]


class _Version(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The last field of every kind's TLS, after the kind's own fields: keyword-only fields follow all others."""

    min_version: Annotated[Literal["1.2", "1.3"], REPLACES.unless("1.2")] | None = None
    """Minimum TLS version. Defaults to 1.2."""


class TLS(_Version, frozen=True, rename="camel"):
    """TLS for clients. memcached reloads changed certificates without a restart."""

    secret_name: Annotated[SecretName, REPLACES]
    """Name of a Secret of type kubernetes.io/tls in this namespace, with the certificate in `tls.crt` and its key in
    `tls.key`. memcached loads new content without a restart."""

    client_auth: Annotated[Literal["None", "Request", "Require"], REPLACES.unless("None")] | None = None
    """Whether clients need certificates. `None`: memcached requests none. `Request`: clients may connect without a
    certificate, but an invalid one is rejected. `Require`: every client needs a valid one. Defaults to `None`."""

    client_ca_secret_name: Annotated[SecretName, REPLACES] | None = field(default=None, name="clientCASecretName")
    """Name of a Secret in this namespace with the CA certificates that verify clients, `ca.crt`. Defaults to
    `secretName`."""
