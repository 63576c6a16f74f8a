"""The rules of Memcached, each in Python and in CEL."""

from typing import Final

from memcached_api.memcached.cache_rules import CACHE_RULES
from memcached_api.memcached.option_rules import EXTRA_ARGS_RULES
from memcached_api.memcached.placing_rules import PLACING_RULES
from memcached_api.validation.common_rules import (
    MAX_PORT,
    MAX_SUBDOMAIN_LENGTH,
    NAME,
    RESOURCES,
    SUBDOMAIN,
    image_rule,
    matches,
    range_rule,
    size_rule,
    unique_rule,
)
from memcached_api.validation.rules import value_rule

MIN_PORT: Final = 1024  # memcached does not run as root, and only root can bind lower ports

SIZE: Final = size_rule("to stop the cache, delete the Memcached object instead")

CONTAINER_PORT: Final = range_rule(
    "spec.containerPort",
    MIN_PORT,
    MAX_PORT,
    "; memcached does not run as root and cannot bind a lower port; use 11211, its default",
)

IMAGE: Final = image_rule(
    "must be an image reference such as docker.io/library/memcached:1.6.38 or host:5000/name@sha256:<64 hexadecimal "
    "digits>; omit the field on create to use the operator's default",
)

IMAGE_PULL_SECRET: Final = value_rule(
    "spec.imagePullSecrets[*].name",
    lambda name: len(name) <= MAX_SUBDOMAIN_LENGTH and matches(SUBDOMAIN, name),
    f"self.matches(r'{SUBDOMAIN}')",
    "must be the name of a Secret in this namespace: lower-case letters, digits, '-' and '.', at most "
    f"{MAX_SUBDOMAIN_LENGTH} characters",
)

UNIQUE_IMAGE_PULL_SECRETS: Final = unique_rule(
    "spec.imagePullSecrets",
    "name",
    "a.name == b.name",
    "must be unique in imagePullSecrets; remove one of the two",
    lambda secret: secret.get("name"),
)

RULES: Final = (
    NAME,
    SIZE,
    CONTAINER_PORT,
    IMAGE,
    IMAGE_PULL_SECRET,
    UNIQUE_IMAGE_PULL_SECRETS,
    *RESOURCES,
    *CACHE_RULES,
    *EXTRA_ARGS_RULES,
    *PLACING_RULES,
)
