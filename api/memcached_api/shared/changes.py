"""The values of the shared parts of specs by the names of the fields, normalized for comparison."""

from memcached_api.kubernetes import comparable_resources
from memcached_api.shared.agent import Agent
from memcached_api.shared.placing import DEFAULT_ACCOUNT, DEFAULT_GRACE_SECONDS, PodTemplate, security_context


def agent_values(agent: Agent | None) -> dict[str, object]:
    """The values of `spec.agent`. None without an agent, because they have no effect then."""
    agent = agent or Agent()
    return {"spec.agent.image": agent.image, "spec.agent.resources": comparable_resources(agent.resources)}


def template_values(template: PodTemplate | None) -> dict[str, object]:
    """The values of `spec.podTemplate`."""
    template = template or PodTemplate()
    metadata, pod = template.metadata, template.spec
    grace = pod.termination_grace_period_seconds
    return {
        "spec.podTemplate.metadata.labels": metadata.labels,
        "spec.podTemplate.metadata.annotations": metadata.annotations,
        "spec.podTemplate.spec.nodeSelector": pod.node_selector,
        "spec.podTemplate.spec.tolerations": pod.tolerations,
        "spec.podTemplate.spec.affinity": pod.affinity,
        "spec.podTemplate.spec.topologySpreadConstraints": pod.topology_spread_constraints,
        "spec.podTemplate.spec.priorityClassName": pod.priority_class_name,
        "spec.podTemplate.spec.runtimeClassName": pod.runtime_class_name,
        "spec.podTemplate.spec.serviceAccountName": pod.service_account_name or DEFAULT_ACCOUNT,
        "spec.podTemplate.spec.terminationGracePeriodSeconds": DEFAULT_GRACE_SECONDS if grace is None else grace,
        "spec.podTemplate.spec.securityContext": security_context(pod),
    }
