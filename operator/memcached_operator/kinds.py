"""The kinds that the controller reconciles. The permissions in config/ follow from what they own."""

from memcached_api.images import Images
from memcached_operator.appservice.controller import appservice
from memcached_operator.kind import Controller
from memcached_operator.memcached.addresses import CLUSTER_DOMAIN
from memcached_operator.memcached.controller import memcached


def kinds(defaults: Images, cluster_domain: str = CLUSTER_DOMAIN) -> list[Controller]:
    """Every kind that this operator reconciles.

    `defaults`: the images of Memcacheds that name none. `cluster_domain`: the DNS domain of the cluster.
    """
    return [memcached(defaults, cluster_domain), appservice()]
