"""The kinds that the controller reconciles. The permissions in config/ follow from what they own."""

from memcached_operator.appservice.controller import appservice
from memcached_operator.kind import Kind
from memcached_operator.memcached.controller import memcached


def kinds(default_image: str) -> list[Kind]:
    """Every kind that this operator reconciles. `default_image`: the image of Memcacheds without `spec.image`."""
    return [memcached(default_image), appservice()]
