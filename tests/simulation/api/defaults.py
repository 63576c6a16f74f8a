"""Defaults of the API server, set in place (pkg/apis/*/v1/defaults.go of Kubernetes 1.35)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from memcached_operator.kube.resource import Object

FILE_MODE: Final = 420
"""0644, in volumes."""


def set_defaults(plural: str, obj: Object) -> None:
    """Set the defaults of an object of a built-in type."""
    if (function := DEFAULTS.get(plural)) is not None:
        function(obj)


def _fill(obj: Object, **values: Any) -> None:
    for name, value in values.items():
        if name not in obj:
            obj[name] = value


def _deployment(obj: Object) -> None:
    spec = obj["spec"]
    strategy = spec["strategy"]
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _pod_spec(spec["template"]["spec"])


def _stateful_set(obj: Object) -> None:
    spec = obj["spec"]
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        _fill(strategy["rollingUpdate"], partition=0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    _fill(retention, whenDeleted="Retain", whenScaled="Retain")
    _fill(spec, podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    _pod_spec(spec["template"]["spec"])
    for claim in spec.get("volumeClaimTemplates", ()):
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        _claim(claim)


def _replica_set(obj: Object) -> None:
    _fill(obj["spec"], replicas=1)
    _pod_spec(obj["spec"]["template"]["spec"])


def _pod(obj: Object) -> None:
    spec = obj["spec"]
    for container in (*(spec["containers"] or ()), *spec.get("initContainers", ())):
        if limits := container["resources"].get("limits"):
            requests = container["resources"].setdefault("requests", {})
            _fill(requests, **limits)
    _fill(spec, enableServiceLinks=True)
    _pod_spec(spec)


def _pod_spec(spec: Object) -> None:
    _fill(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", securityContext={}, schedulerName="default-scheduler")
    _fill(spec, terminationGracePeriodSeconds=30)
    if "serviceAccountName" in spec or "serviceAccount" in spec:  # conversion.go: both have the same value
        name = spec.get("serviceAccountName") or spec["serviceAccount"]
        spec.update(serviceAccountName=name, serviceAccount=name)
    for container in (*(spec["containers"] or ()), *spec.get("initContainers", ())):
        _container(container)
    for volume in spec.get("volumes", ()):
        _volume(volume)


def _container(container: Object) -> None:
    image: str = container.get("image", "")
    _, _, tag = image.rpartition("/")[2].partition(":")
    is_latest = "@" not in image and tag in ("", "latest")
    _fill(container, imagePullPolicy="Always" if is_latest else "IfNotPresent")
    _fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    for port in container.get("ports", ()):
        _fill(port, protocol="TCP")
    for variable in container.get("env", ()):
        if field := variable.get("valueFrom", {}).get("fieldRef"):
            _fill(field, apiVersion="v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _handler(probe)
    lifecycle: Object = container.get("lifecycle", {})
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            _handler(lifecycle[name])


def _handler(handler: Object) -> None:
    if request := handler.get("httpGet"):
        _fill(request, path="/", scheme="HTTP")
    if (request := handler.get("grpc")) is not None:
        _fill(request, service="")


def _volume(volume: Object) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if name in volume:
            _fill(volume[name], defaultMode=FILE_MODE)
    sources = volume.get("projected", {}).get("sources", ())
    for source in (volume, *sources):
        for item in source.get("downwardAPI", {}).get("items", ()):
            if "fieldRef" in item:
                _fill(item["fieldRef"], apiVersion="v1")
            if "resourceFieldRef" in item:
                _fill(item["resourceFieldRef"], divisor="0")
        if "serviceAccountToken" in source:
            _fill(source["serviceAccountToken"], expirationSeconds=3600)


def _service(obj: Object) -> None:
    spec = obj["spec"]
    _fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        _fill(spec, sessionAffinityConfig={"clientIP": {"timeoutSeconds": 10800}})
    for port in spec.get("ports", ()):
        _fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port["port"]
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] != "ExternalName":
        _fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)


def _network_policy(obj: Object) -> None:
    spec = obj["spec"]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            _fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _claim(obj: Object) -> None:
    _fill(obj["spec"], volumeMode="Filesystem")
    _fill(obj["status"], phase="Pending")


def _limit_range(obj: Object) -> None:
    for limit in obj["spec"]["limits"] or ():
        if limit.get("type") == "Container":
            default = {**limit.get("max", {}), **limit.get("default", {})}
            request = {**limit.get("min", {}), **default, **limit.get("defaultRequest", {})}
            limit.update({name: found for name, found in (("default", default), ("defaultRequest", request)) if found})


def _secret(obj: Object) -> None:
    _fill(obj, type="Opaque")


def _namespace(obj: Object) -> None:
    _fill(obj["status"], phase="Active")
    if name := obj["metadata"].get("name"):
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _role_binding(obj: Object) -> None:
    _fill(obj["roleRef"], apiGroup="rbac.authorization.k8s.io")
    for subject in obj.get("subjects", ()):
        if subject["kind"] in ("User", "Group"):
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def _webhooks(obj: Object) -> None:
    for webhook in obj.get("webhooks", ()):
        _fill(webhook, failurePolicy="Fail", matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
        _fill(webhook, timeoutSeconds=10)
        if obj["kind"].startswith("Mutating"):
            _fill(webhook, reinvocationPolicy="Never")
        for rule in webhook.get("rules", ()):
            _fill(rule, scope="*")
        if "service" in webhook["clientConfig"]:
            _fill(webhook["clientConfig"]["service"], port=443)


DEFAULTS: Final[Mapping[str, Callable[[Object], None]]] = {
    "deployments": _deployment,
    "statefulsets": _stateful_set,
    "replicasets": _replica_set,
    "pods": _pod,
    "services": _service,
    "networkpolicies": _network_policy,
    "persistentvolumeclaims": _claim,
    "limitranges": _limit_range,
    "secrets": _secret,
    "namespaces": _namespace,
    "rolebindings": _role_binding,
    "clusterrolebindings": _role_binding,
    "mutatingwebhookconfigurations": _webhooks,
    "validatingwebhookconfigurations": _webhooks,
}
