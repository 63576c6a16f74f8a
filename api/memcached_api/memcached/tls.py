"""The parts of a Memcached's spec about TLS and about passwords."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from memcached_api.validation.common_rules import MAX_PORT, MAX_SUBDOMAIN_LENGTH

LOOPBACK_PORT: Final = 11210
"""The port on which memcached serves the agent without TLS, at 127.0.0.1 only. Without TLS, it is not used."""

MIN_PORT: Final = 1024  # memcached does not run as root, and only root can bind lower ports

SecretName = Annotated[str, Meta(max_length=MAX_SUBDOMAIN_LENGTH)]


class TLS(msgspec.Struct, frozen=True, rename="camel"):
    """TLS for the clients. memcached reloads changed certificates while it runs."""

    secret_name: SecretName
    """Name of a Secret in this namespace with the certificate, `tls.crt`, and its key, `tls.key`: of type
    kubernetes.io/tls, as cert-manager writes it. memcached uses new content without a restart."""

    client_auth: Literal["None", "Request", "Require"] | None = None
    """Whether clients need certificates. `None`: memcached asks for none. `Request`: a client without a certificate is
    accepted, one with an invalid certificate is not. `Require`: each client needs a valid one. If absent, `None`."""

    client_ca_secret_name: SecretName | None = msgspec.field(default=None, name="clientCASecretName")
    """Name of a Secret in this namespace with the CA certificates that verify clients, `ca.crt`. If absent, `ca.crt` of
    `secretName`."""

    port: Annotated[int, Meta(ge=MIN_PORT, le=MAX_PORT)] | None = None
    """Port on which memcached serves TLS. If absent, `containerPort`."""

    plaintext: Literal["Disabled", "Enabled"] | None = None
    """`Enabled`: memcached serves `containerPort` without TLS too; needs another `port`. For the time in which clients
    migrate to TLS. If absent, `Disabled`."""

    min_version: Literal["1.2", "1.3"] | None = None
    """Minimum version of TLS. If absent, 1.2."""


class Auth(msgspec.Struct, frozen=True, rename="camel"):
    """User names and passwords. Each client must log in by memcached's text protocol."""

    secret_name: SecretName
    """Name of a Secret in this namespace with the key `users`: 1 to 8 lines of the form `user:password`. memcached uses
    new content without a restart."""
