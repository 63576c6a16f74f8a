"""The parts of a Memcached's spec about TLS and about passwords."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memcached_api.effects import REPLACES
from memcached_api.shared import tls
from memcached_api.shared.tls import MIN_PORT, SecretName
from memcached_api.validation.common_rules import MAX_PORT


class TLS(tls.TLS, frozen=True, rename="camel"):
    """TLS for clients. memcached reloads changed certificates without a restart."""

    port: Annotated[int, Meta(ge=MIN_PORT, le=MAX_PORT), REPLACES] | None = None
    """Port on which memcached serves TLS. Defaults to `containerPort`."""

    plaintext: Annotated[Literal["Disabled", "Enabled"], REPLACES.unless("Disabled")] | None = None
    """Whether memcached also serves `containerPort` without TLS while clients migrate to TLS. `Enabled` requires
    another `port`. Defaults to `Disabled`."""


class Auth(msgspec.Struct, frozen=True, rename="camel"):
    """User names and passwords. Every client must log in through memcached's text protocol."""

    secret_name: Annotated[SecretName, REPLACES]
    """Name of a Secret in this namespace whose key `users` contains 1 to 8 lines of the form `user:password`. memcached
    loads new content without a restart."""
