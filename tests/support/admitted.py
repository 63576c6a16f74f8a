"""Specs as the API server stores them after the mutating webhook, for control planes without one."""

from typing import Any

from memcached_api.images import Images
from memcached_webhooks.kinds.memcached import defaults
from memcached_webhooks.patches import merge_operations
from support.reviewing import patched

Object = dict[str, Any]

IMAGE = "example.com/memcached:1"
"""The image of a new object without `spec.image`. Simulated nodes start any image."""


def admitted(**spec: Any) -> Object:
    """The spec of a new Memcached with every default that the webhook sets."""
    return patched({"spec": spec}, merge_operations(spec, defaults(spec, None, Images(IMAGE))))["spec"]
