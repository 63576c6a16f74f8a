"""The MemcachedProxy controller: the resources it owns, what it refers to, and its two pure functions."""

from memcached_api.images import Images
from memcached_api.memcachedproxy.types import GROUP, KIND, PLURAL, VERSION
from memcached_api.remedies import text_of
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.findings.creation_remedies import METADATA
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    SERVICES,
    Resource,
)
from memcached_operator.memcachedproxy.containers import restart
from memcached_operator.memcachedproxy.desired.deployment import APP_NAME, CONTAINER
from memcached_operator.memcachedproxy.images import image_counts
from memcached_operator.memcachedproxy.plan import needs_budgets, plan_with
from memcached_operator.memcachedproxy.references import REFERENCE
from memcached_operator.memcachedproxy.status import RINGS, status_with
from memcached_operator.memcachedproxy.target import POD_REFERENCE
from memcached_operator.parts.dns import CLUSTER_DOMAIN
from memcached_operator.parts.images import live_image
from memcached_operator.parts.workloads.deployment import DEPLOYMENT

MEMCACHEDPROXIES = Resource(GROUP, VERSION, KIND, PLURAL)


def memcachedproxy(defaults: Images, cluster_domain: str = CLUSTER_DOMAIN) -> ReconciledKind:
    """The MemcachedProxy kind. `defaults`: the images of objects without `spec.image`.

    `cluster_domain`: the DNS domain of the cluster.
    """
    return ReconciledKind(
        resource=MEMCACHEDPROXIES,
        app_name=APP_NAME,
        owns=(DEPLOYMENTS, SERVICES, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES, POD_MONITORS),
        workloads=(DEPLOYMENT,),
        plan=plan_with(defaults),
        status=status_with(cluster_domain),
        optional=(POD_MONITORS,),
        references=(REFERENCE,),
        pod_references=(POD_REFERENCE,),
        listed=RINGS,
        needs_budgets=needs_budgets,
        counts=lambda cr, live: image_counts(cr, live_image(live, CONTAINER), defaults),
        restart=restart,
        template_remedy=lambda _: text_of(METADATA),
    )
