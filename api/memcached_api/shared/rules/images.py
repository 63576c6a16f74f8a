"""The rules about the image of memcached and the Secrets to pull images, each in Python and in CEL."""

from typing import Final

from memcached_api.shared.rules.secrets import secret_rule
from memcached_api.validation.common_rules import image_rule, unique_rule

IMAGE: Final = image_rule(
    "must be an image reference such as docker.io/library/memcached:1.6.45 or host:5000/name@sha256:<64 hexadecimal "
    "digits>; omit the field on create to use the operator's default",
)

IMAGE_PULL_SECRET: Final = secret_rule("spec.imagePullSecrets[*].name")

UNIQUE_IMAGE_PULL_SECRETS: Final = unique_rule(
    "spec.imagePullSecrets",
    "name",
    "a.name == b.name",
    "must be unique in imagePullSecrets; remove one of the two",
    lambda secret: secret.get("name"),
)

IMAGE_RULES: Final = (IMAGE, IMAGE_PULL_SECRET, UNIQUE_IMAGE_PULL_SECRETS)
