"""The fields whose change replaces the pods of a MemcachedProxy."""

from typing import Final

from memcached_api.kind import REPLACES

_POD_TEMPLATE: Final = (
    *("metadata.labels", "metadata.annotations"),
    *("spec.nodeSelector", "spec.tolerations", "spec.affinity", "spec.topologySpreadConstraints"),
    *("spec.priorityClassName", "spec.runtimeClassName", "spec.serviceAccountName"),
    *("spec.terminationGracePeriodSeconds", "spec.securityContext"),
)

REPLACING: Final = (
    *("spec.memcachedRef.name", "spec.port", "spec.image", "spec.imagePullPolicy", "spec.imagePullSecrets"),
    *("spec.resources", "spec.threads", "spec.maxConnections", "spec.timeouts.connect", "spec.timeouts.read"),
    *(f"spec.podTemplate.{name}" for name in _POD_TEMPLATE),
    *("spec.rollout.restartedAt", "spec.monitoring.enabled", "spec.agent.image", "spec.agent.resources"),
    *(f"spec.tls.{name}" for name in ("secretName", "clientAuth", "clientCASecretName", "minVersion")),
)
"""Their paths."""

SENTENCES: Final = dict.fromkeys(REPLACING, REPLACES)
"""The sentence about a change in the description of each field."""
