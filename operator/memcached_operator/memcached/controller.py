"""The Memcached controller: the resources it owns, and its two pure functions, plan and status."""

from memcached_api.images import Images
from memcached_api.memcached.types import GROUP, KIND, PLURAL, VERSION
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    PROMETHEUS_RULES,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from memcached_operator.memcached.addresses import owners
from memcached_operator.memcached.containers import template_remedy
from memcached_operator.memcached.desired.pods import APP_NAME, CONTAINER
from memcached_operator.memcached.images import image_counts
from memcached_operator.memcached.interventions import restart
from memcached_operator.memcached.plan import needs_budgets, plan_with
from memcached_operator.memcached.scaling.report import waiting_since
from memcached_operator.memcached.status import status_with
from memcached_operator.parts.dns import CLUSTER_DOMAIN
from memcached_operator.parts.images import live_image
from memcached_operator.parts.workloads.deployment import DEPLOYMENT
from memcached_operator.parts.workloads.statefulset import STATEFULSET

MEMCACHEDS = Resource(GROUP, VERSION, KIND, PLURAL)


def memcached(defaults: Images, cluster_domain: str = CLUSTER_DOMAIN) -> ReconciledKind:
    """The Memcached kind. `defaults`: the images of objects without `spec.image` or `spec.agent.image`.

    `cluster_domain`: the DNS domain of the cluster.
    """
    return ReconciledKind(
        resource=MEMCACHEDS,
        app_name=APP_NAME,
        owns=(
            *(DEPLOYMENTS, STATEFULSETS, SERVICES, CONFIG_MAPS, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES),
            *(POD_MONITORS, PROMETHEUS_RULES),
        ),
        workloads=(DEPLOYMENT, STATEFULSET),
        plan=plan_with(defaults, cluster_domain),
        status=status_with(cluster_domain),
        optional=(POD_MONITORS, PROMETHEUS_RULES),
        loss="its items are lost",
        owners=owners,
        updates_pods=True,
        needs_budgets=needs_budgets,
        counts=lambda cr, live: image_counts(cr, live_image(live, CONTAINER), defaults),
        waiting_since=waiting_since,
        restart=restart,
        template_remedy=template_remedy,
    )
