"""The types of Kubernetes that the simulation knows, as far as they differ from structs with lists that are one field.

List and map types are those of `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` in the OpenAPI document of
Kubernetes 1.35 (api/openapi-spec/swagger.json). Each comment names the definition there. The `kept` fields are those
without `omitempty`, or with a struct as value, in k8s.io/api (types.go).
"""

from typing import Final

from simulation.api.schema import ATOMIC, ATOMIC_MAP, MAP, RAW, SET, Type, items, keyed, struct

META: Final = struct(
    {
        "labels": MAP,
        "annotations": MAP,
        "finalizers": SET,  # ObjectMeta
        "ownerReferences": keyed("uid", item=ATOMIC),  # ObjectMeta, OwnerReference
    }
)
CONDITIONS: Final = keyed("type")  # DeploymentStatus, StatefulSetStatus, ReplicaSetStatus, PodDisruptionBudgetStatus, …
SELECTOR: Final = Type(fields={"matchLabels": MAP}, named=True, atomic=True)  # LabelSelector

_SOURCES: Final = struct(
    {"configMapKeyRef": ATOMIC, "fieldRef": ATOMIC, "fileKeyRef": ATOMIC, "resourceFieldRef": ATOMIC}
    | {"secretKeyRef": ATOMIC}  # ConfigMapKeySelector, ObjectFieldSelector, …, SecretKeySelector
)
_RESOURCES: Final = struct({"limits": MAP, "requests": MAP, "claims": keyed("name")})  # ResourceRequirements
_HANDLER: Final = struct({"sleep": struct(None, seconds=0)})
CONTAINER: Final = struct(
    {
        "env": keyed("name", item=struct({"valueFrom": _SOURCES})),  # Container
        "ports": keyed("containerPort", "protocol", protocol="TCP"),  # Container, ContainerPort
        "volumeDevices": keyed("devicePath"),  # Container
        "volumeMounts": keyed("mountPath"),  # Container
        "resources": _RESOURCES,
        "lifecycle": struct({"postStart": _HANDLER, "preStop": _HANDLER}),
    },
    resources={},
)
_TERM: Final = struct({"labelSelector": SELECTOR, "namespaceSelector": SELECTOR})
_WEIGHTED: Final = items(struct({"podAffinityTerm": _TERM, "preference": ATOMIC}))
_AFFINITY: Final = struct(
    {
        "nodeAffinity": struct(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": ATOMIC,  # NodeSelector
                "preferredDuringSchedulingIgnoredDuringExecution": _WEIGHTED,
            }
        ),
        **{
            name: struct(
                {
                    "requiredDuringSchedulingIgnoredDuringExecution": items(_TERM),
                    "preferredDuringSchedulingIgnoredDuringExecution": _WEIGHTED,
                }
            )
            for name in ("podAffinity", "podAntiAffinity")
        },
    }
)
POD_SPEC: Final = struct(
    {
        "containers": keyed("name", item=CONTAINER),  # PodSpec
        "initContainers": keyed("name", item=CONTAINER),  # PodSpec
        "ephemeralContainers": keyed("name", item=CONTAINER),  # PodSpec
        "hostAliases": keyed("ip"),  # PodSpec
        "imagePullSecrets": keyed("name", item=ATOMIC),  # PodSpec, LocalObjectReference
        "nodeSelector": ATOMIC_MAP,  # PodSpec
        "overhead": MAP,
        "affinity": _AFFINITY,
        "resources": _RESOURCES,
        "resourceClaims": keyed("name"),  # PodSpec
        "schedulingGates": keyed("name"),  # PodSpec
        # PodSpec
        "topologySpreadConstraints": keyed(
            "topologyKey", "whenUnsatisfiable", item=struct({"labelSelector": SELECTOR})
        ),
        "volumes": keyed("name"),  # PodSpec
    },
    containers=None,
)
POD_TEMPLATE: Final = struct({"metadata": META, "spec": POD_SPEC}, metadata={}, spec={})
_CONTAINER_STATUS: Final = struct(
    {"allocatedResources": MAP, "resources": _RESOURCES, "volumeMounts": keyed("mountPath")},  # ContainerStatus
    state={},
    lastState={},
    imageID="",
    ready=False,
    restartCount=0,
)
_CONTAINER_STATUSES: Final = items(_CONTAINER_STATUS)
_POD_CONDITION: Final = struct(None, lastProbeTime=None, lastTransitionTime=None)
_POD_STATUS: Final = struct(
    {
        "conditions": keyed("type", item=_POD_CONDITION),  # PodStatus
        "containerStatuses": _CONTAINER_STATUSES,
        "initContainerStatuses": _CONTAINER_STATUSES,
        "ephemeralContainerStatuses": _CONTAINER_STATUSES,
        "podIPs": keyed("ip"),  # PodStatus
        "resourceClaimStatuses": keyed("name"),  # PodStatus
    }
)


def _object(spec: Type | None = None, status: Type | None = None, **fields: Type) -> Type:
    """An object with a spec and a status. Both are present in every object of a Go type that has them."""
    types = {"metadata": META, "spec": spec, "status": status, **fields}
    present = {name: kind for name, kind in types.items() if kind is not None}
    return struct(present, **{name: {} for name in present if name in ("metadata", "spec", "status")})


_WORKLOAD_STATUS: Final = struct({"conditions": CONDITIONS})
_CLAIM: Final = _object(
    struct({"resources": _RESOURCES, "selector": SELECTOR, "dataSource": ATOMIC}, resources={}),
    struct({"conditions": CONDITIONS, "capacity": MAP, "allocatedResources": MAP}),  # PersistentVolumeClaimStatus
)
DEPLOYMENT: Final = _object(
    struct({"selector": SELECTOR, "template": POD_TEMPLATE}, selector=None, strategy={}, template={}), _WORKLOAD_STATUS
)
STATEFUL_SET: Final = _object(
    struct(
        {
            "selector": SELECTOR,
            "template": POD_TEMPLATE,
            "volumeClaimTemplates": items(_CLAIM),
            "ordinals": struct(None, start=0),
        },
        selector=None,
        serviceName="",
        template={},
        updateStrategy={},
    ),
    struct({"conditions": CONDITIONS}, replicas=0, availableReplicas=0),
)
REPLICA_SET: Final = _object(
    struct({"selector": SELECTOR, "template": POD_TEMPLATE}, selector=None, template={}),
    struct({"conditions": CONDITIONS}, replicas=0),
)
CONTROLLER_REVISION: Final = Type(fields={"metadata": META, "data": RAW}, named=True, kept={"metadata": {}})
POD: Final = _object(POD_SPEC, _POD_STATUS)
SERVICE: Final = _object(
    struct(
        {
            "ports": keyed("port", "protocol", item=struct(None, targetPort=0), protocol="TCP"),  # ServiceSpec
            "selector": ATOMIC_MAP,  # ServiceSpec
        }
    ),
    struct({"conditions": CONDITIONS}, loadBalancer={}),  # ServiceStatus
)
CONFIG_MAP: Final = _object(data=MAP, binaryData=MAP)
SECRET: Final = _object(data=MAP, stringData=MAP)
EVENT: Final = struct(
    {"metadata": META, "involvedObject": ATOMIC, "regarding": ATOMIC, "related": ATOMIC},  # ObjectReference
    metadata={},
    involvedObject={},
    source={},
    firstTimestamp=None,
    lastTimestamp=None,
    eventTime=None,
    reportingComponent="",
    reportingInstance="",
)
LEASE: Final = _object(struct())
_DISRUPTION_STATUS: Final = struct(
    {"conditions": CONDITIONS, "disruptedPods": MAP},
    disruptionsAllowed=0,
    currentHealthy=0,
    desiredHealthy=0,
    expectedPods=0,
)
POD_DISRUPTION_BUDGET: Final = _object(struct({"selector": SELECTOR}), _DISRUPTION_STATUS)
_PEERS: Final = items(struct({"podSelector": SELECTOR, "namespaceSelector": SELECTOR}))
_RULES: Final = items(struct({"from": _PEERS, "to": _PEERS}))
NETWORK_POLICY: Final = _object(struct({"podSelector": SELECTOR, "ingress": _RULES, "egress": _RULES}, podSelector={}))
NAMESPACE: Final = _object(struct(), struct({"conditions": CONDITIONS}))  # NamespaceStatus
NODE: Final = _object(
    struct({"podCIDRs": SET}),  # NodeSpec
    struct(
        {"conditions": CONDITIONS, "addresses": keyed("type"), "allocatable": MAP, "capacity": MAP},  # NodeStatus
        daemonEndpoints={"kubeletEndpoint": {"Port": 0}},
    ),
)
SERVICE_ACCOUNT: Final = _object(secrets=keyed("name", item=ATOMIC))  # ServiceAccount, ObjectReference
ROLE: Final = struct({"metadata": META}, metadata={}, rules=None)
ROLE_BINDING: Final = struct({"metadata": META, "subjects": items(ATOMIC), "roleRef": ATOMIC}, metadata={}, roleRef={})
RESOURCE_QUOTA: Final = _object(struct({"hard": MAP, "scopeSelector": ATOMIC}), struct({"hard": MAP, "used": MAP}))
_LIMIT: Final = struct(dict.fromkeys(("default", "defaultRequest", "max", "min", "maxLimitRequestRatio"), MAP))
LIMIT_RANGE: Final = _object(struct({"limits": items(_LIMIT)}, limits=None))
CLAIM: Final = _CLAIM
ENDPOINT_SLICE: Final = struct(
    {"metadata": META, "endpoints": items(struct({"addresses": SET}, conditions={}))},  # Endpoint
    metadata={},
    endpoints=None,
    ports=None,
)
WEBHOOK_CONFIGURATION: Final = struct(
    {
        "metadata": META,
        "webhooks": keyed(  # MutatingWebhookConfiguration, ValidatingWebhookConfiguration
            "name",
            item=struct(
                {"matchConditions": keyed("name"), "namespaceSelector": SELECTOR, "objectSelector": SELECTOR},
                clientConfig={},
            ),
        ),
    },
    metadata={},
)
