"""The table of the admission policies: changes of valid children, and the message of the policy that denies each.

FIELDS has the fields and values of pod templates that the variable `allowed` of `children` does not list, such as
those of another source of a volume. DENIED has the other rules. ALLOWED has changes that users can request.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from integration.confined import ACCOUNT, ACCOUNT_NAMESPACE, CHILDREN, FOREIGN, child, container, nested, owner, pod
from memcached_operator.kube.labels import INSTANCE, MANAGED_BY, NAME
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    PROMETHEUS_RULES,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
)
from memcached_operator.memcached.alerts.caches import GROUP, rules_of
from memcached_operator.memcached.desired.warm_restart import STOP
from memcached_operator.parts.pod_monitor import CACHE_LABEL
from support.invalid import at
from support.kubernetes import CLAIMS, FILE_KEYS, USER_NAMESPACES, Difference
from support.policies import message


class Row(NamedTuple):
    """A merge patch of a valid object, and the whole message of its denial; no message if it is allowed.

    A row that is `only_new` is about the creation of an object: an update would be another change, or invalid.
    Versions before `since` reject or remove the fields before they evaluate policies.
    """

    resource: Resource
    change: Object
    message: str = ""
    only_new: bool = False
    since: Difference | None = None

    @property
    def name(self) -> str:
        """The name of the row in the output of a test."""
        return f"{self.resource.kind} {self.change}"[:200]


Table = tuple[Row, ...]


def valid(resource: Resource) -> Object:
    """A new object that the policies let the controller create. Of Secrets, there is only this one."""
    if resource != SECRETS:
        return child(resource, "new")
    meta = {"name": "memcached-operator-webhook-cert", "namespace": ACCOUNT_NAMESPACE}
    return {"metadata": meta, "type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}


def spec(**fields: Any) -> Object:
    """A patch of a spec."""
    return {"spec": fields}


def template(field: str, **values: str | None) -> Object:
    """A patch of the labels or annotations of a pod template."""
    return nested(f"spec.template.metadata.{field}", values)


def not_written(path: str) -> str:
    """The denial of a field or a value of a pod template. The path of an item is that of its list."""
    return f"{path.replace('[0]', '')}: memcached-operator does not write this field, or not this value"


def _fields(
    path: str, /, *, since: Difference | None = None, pod: Object | None = None, **fields: Any
) -> Iterator[Row]:
    """One row for each field of an object in a pod template. `pod` has other fields of the pod."""
    for name, value in fields.items():
        change = at(f"{path}.{name}", value, given={"template": {"spec": pod or {}}}).spec
        yield Row(DEPLOYMENTS, {"spec": change}, not_written(f"spec.{path}.{name}"), since=since)


POD: Final = "template.spec"
CONTEXT: Final = "securityContext"
CONTAINER: Final = f"{POD}.containers[0]"
VOLUME: Final = f"{POD}.volumes[0]"
REQUEST: Final[Object] = {"httpGet": {"host": "169.254.169.254", "port": 80}}
PROFILE: Final[Object] = {"type": "Unconfined"}
SELINUX: Final = {"type": "spc_t"}
WINDOWS: Final = {"runAsUserName": "SYSTEM"}
SWEEP: Final = {"name": "sweep", "image": "a", "terminationMessagePolicy": "FallbackToLogsOnError"}
SWEPT: Final[Object] = {"initContainers": [SWEEP]}
MOUNTED: Final = {"name": "all", "mountPath": "/a"}
CLAIM: Final = [{"name": "gpu", "resourceClaimName": "theirs"}]
FILE_KEY: Final[Object] = {"fileKeyRef": {"volumeName": "all", "path": "a", "key": "b"}}
HEADER: Final = {"name": "a", "value": "b"}
PROBES: Final[tuple[tuple[str, Object, Object], ...]] = (
    ("httpGet", {"path": "/livez", "port": "probes"}, {"host": "192.0.2.1", "path": "/quit", "port": "metrics"}),
    ("httpGet", {"path": "/readyz", "port": "probes"}, {"port": 10250, "scheme": "HTTPS", "httpHeaders": [HEADER]}),
    ("tcpSocket", {"port": 80}, {"host": "192.0.2.1"}),
)
"""A handler of a probe, its allowed fields, and others."""
ARGS: Final = {"fieldPath": "metadata.annotations['memcached-operator.example.com/args']"}


def _volume(**source: Any) -> Object:
    return {"volumes": [{"name": "all", **source}]}


def _privileged_sweep() -> Iterator[Row]:
    """An init container may have no more rights than a container, under whose path it is reported."""
    given = SWEEP | {"securityContext": {"privileged": True}}
    yield Row(DEPLOYMENTS, pod("initContainers", [given]), not_written(f"spec.{CONTAINER}.{CONTEXT}.privileged"))


def _args(**item: Any) -> Object:
    return _volume(downwardAPI={"items": [{"path": "args", "fieldRef": ARGS, **item}]})


DATA: Final = _volume(emptyDir={"sizeLimit": "1Mi"})
CLAIMED: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
OTHER_CLAIM: Final[Object] = {"kind": "PersistentVolumeClaim", "name": "any"}
CLAIM_SPEC: Final = f"{VOLUME}.ephemeral.volumeClaimTemplate.spec"
CLAIMING: Final = _volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIMED}})
MOUNT: Final = {
    **_volume(emptyDir={"sizeLimit": "1Mi"}),
    "containers": [{"volumeMounts": [{"name": "all", "mountPath": "/a"}]}],
}
USERS: Final = {"secretName": "any", "items": [{"key": "users", "path": "users"}]}
NAMED_VARIABLE: Final = {**_volume(emptyDir={}), "containers": [{"env": [{"name": "A"}]}]}
NUMBERED_PORT: Final = {"containers": [{"ports": [{"containerPort": 80}]}]}
FIELDS: Final[Table] = (
    *_fields("template.metadata", finalizers=["example.com/held"]),
    *_fields(POD, hostNetwork=True, hostPID=True, hostIPC=True, nodeName="control-plane", schedulerName="other"),
    *_fields(POD, hostAliases=[{"ip": "192.0.2.1", "hostnames": ["a"]}], dnsPolicy="Default", preemptionPolicy="Never"),
    *_fields(POD, enableServiceLinks=True, automountServiceAccountToken=True),
    *_fields(f"{POD}.initContainers[0]", name="other", restartPolicy="Always", args=["a"], pod=SWEPT),
    *_fields(f"{POD}.initContainers[0]", env=[{"name": "A", "value": "a"}], volumeMounts=[MOUNTED], pod=SWEPT | DATA),
    *_fields(f"{POD}.initContainers[0]", terminationMessagePolicy="File", pod=SWEPT),
    *_fields(POD, hostname="a", subdomain="a", setHostnameAsFQDN=True, readinessGates=[{"conditionType": "a"}]),
    *_fields(POD, hostUsers=True, since=USER_NAMESPACES),
    *_fields(POD, resourceClaims=CLAIM, since=CLAIMS),
    *_fields(f"{POD}.dnsConfig", nameservers=["192.0.2.1"], searches=["example.com"]),
    *_fields(f"{POD}.dnsConfig.options[0]", name="use-vc"),
    *_fields(f"{POD}.dnsConfig.options[0]", value="9", pod={"dnsConfig": {"options": [{"name": "ndots"}]}}),
    *_fields(f"{POD}.{CONTEXT}", runAsNonRoot=False, sysctls=[{"name": "kernel.shm_rmid_forced", "value": "0"}]),
    *_fields(f"{POD}.{CONTEXT}", appArmorProfile=PROFILE, seLinuxOptions=SELINUX, windowsOptions=WINDOWS),
    *_fields(f"{POD}.{CONTEXT}", supplementalGroupsPolicy="Strict", since=USER_NAMESPACES),
    *_fields(f"{POD}.{CONTEXT}.seccompProfile", **PROFILE),
    *_fields(CONTAINER, args=["a"], tty=True, workingDir="/a", envFrom=[{"secretRef": {"name": "any"}}]),
    *_fields(CONTAINER, terminationMessagePath="/a", startupProbe=REQUEST, stdin=True),
    *_fields(f"{CONTAINER}.volumeMounts[0]", subPath="a", mountPropagation="HostToContainer", pod=MOUNT),
    *_fields(CONTAINER, terminationMessagePolicy="FallbackToLogsOnError"),
    *_fields(f"{CONTAINER}.{CONTEXT}", privileged=True, runAsUser=0, seccompProfile=PROFILE, appArmorProfile=PROFILE),
    *_fields(f"{CONTAINER}.{CONTEXT}", seLinuxOptions=SELINUX, windowsOptions=WINDOWS),
    *_fields(f"{CONTAINER}.{CONTEXT}", procMount="Unmasked", pod={"hostUsers": False}, since=USER_NAMESPACES),
    *_privileged_sweep(),
    *_fields(f"{CONTAINER}.{CONTEXT}.capabilities", add=["SYS_ADMIN"]),
    *_fields(f"{CONTAINER}.ports[0]", hostPort=80, hostIP="127.0.0.1", pod=NUMBERED_PORT),
    *_fields(f"{CONTAINER}.resources", claims=[{"name": "gpu"}], pod={"resourceClaims": CLAIM}, since=CLAIMS),
    *_fields(f"{CONTAINER}.env[0].valueFrom", **FILE_KEY, pod=NAMED_VARIABLE, since=FILE_KEYS),
    *_fields(f"{CONTAINER}.lifecycle", postStart=REQUEST),
    *_fields(f"{CONTAINER}.lifecycle.preStop", **REQUEST),
    *_fields(f"{CONTAINER}.livenessProbe", exec={"command": ["a"]}, grpc={"port": 80}),
    *_fields(f"{CONTAINER}.readinessProbe", exec={"command": ["a"]}, grpc={"port": 80}),
    *(
        row
        for probe in ("livenessProbe", "readinessProbe")
        for handler, given, others in PROBES
        for row in _fields(f"{CONTAINER}.{probe}.{handler}", **others, pod={"containers": [{probe: {handler: given}}]})
    ),
    *_fields(VOLUME, configMap={"name": "any"}, csi={"driver": "a"}, nfs={"server": "a", "path": "/a"}, pod=_volume()),
    *_fields(VOLUME, hostPath={"path": "/"}, persistentVolumeClaim={"claimName": "any"}, pod=_volume()),
    *_fields(f"{VOLUME}.projected.sources[0]", configMap={"name": "any"}, pod=_volume()),
    *_fields(f"{VOLUME}.projected.sources[0]", serviceAccountToken={"path": "token"}, pod=_volume()),
    *_fields(CLAIM_SPEC, dataSource=OTHER_CLAIM, dataSourceRef=OTHER_CLAIM, volumeName="any", pod=CLAIMING),
    *_fields(CLAIM_SPEC, selector={"matchLabels": {"app": "any"}}, volumeMode="Block", pod=CLAIMING),
    *_fields(f"{VOLUME}.emptyDir", medium="HugePages", pod=_volume(emptyDir={"sizeLimit": "1Mi"})),
    *_fields(f"{VOLUME}.secret.items[0]", key="a", path="a", pod=_volume(secret=USERS)),
    *_fields(f"{VOLUME}.downwardAPI.items[0]", pod=_args(), path="other"),
    *(
        row
        for field in ("metadata.labels", "metadata.annotations['example.com/args']")
        for row in _fields(f"{VOLUME}.downwardAPI.items[0].fieldRef", fieldPath=field, pod=_args())
    ),
)


def _rule(part: str, resource: Resource, *changes: Object, only_new: bool = False) -> Iterator[Row]:
    """Rows of the only rule whose message contains a text."""
    return (Row(resource, change, message(part), only_new) for change in changes)


def _values(part: str, resource: Resource, path: str, *values: Any, only_new: bool = False) -> Iterator[Row]:
    """Rows of a rule about the values of one field of a spec."""
    return _rule(part, resource, *(nested(f"spec.{path}", value) for value in values), only_new=only_new)


def _of_each(part: str, *changes: Object) -> Iterator[Row]:
    """Rows of a rule about the metadata of the children of every kind."""
    return (row for resource in CHILDREN for row in _rule(part, resource, *({"metadata": each} for each in changes)))


def _selectors(resource: Resource, field: str) -> Iterator[Row]:
    """Rows of the rule about selectors. That of a Deployment is valid only if it selects the pods of its template."""
    of_pods = {"template": {"metadata": {"labels": {"app": "web"}}}} if resource == DEPLOYMENTS else {}
    changes = OTHER_SELECTORS[:-3] if of_pods else OTHER_SELECTORS
    denial = f"spec.{field}: {SELECTOR}"
    return (Row(resource, spec(**{field: each}, **of_pods), denial, only_new=bool(of_pods)) for each in changes)


def _projected(**item: Any) -> Object:
    secret = {"name": "any", "items": [{"key": "tls.crt", "path": "tls.crt", **item}]}
    return {"projected": {"sources": [{"secret": secret}]}}


def _groups(**fields: Any) -> Object:
    return spec(groups=[{"name": GROUP, "rules": OWN_RULES, **fields}])


SELECTOR: Final = (
    "memcached-operator sets app.kubernetes.io/managed-by=memcached-operator and its own app.kubernetes.io/name and "
    "app.kubernetes.io/instance in matchLabels, and no other selector"
)
OTHER_SELECTORS: Final[tuple[Object, ...]] = (
    {"matchLabels": {MANAGED_BY: None}},
    {"matchLabels": {NAME: None, INSTANCE: None}},
    {"matchLabels": {INSTANCE: None}},
    {"matchLabels": {MANAGED_BY: None, NAME: None, INSTANCE: None, "app": "web"}},
    {"matchExpressions": [{"key": NAME, "operator": "Exists"}]},
    {"matchLabels": {MANAGED_BY: "Helm"}},
    {"matchLabels": {NAME: "web"}},
    {"matchLabels": None},
)
OTHER_OWNER: Final[Object] = {
    **owner("ConfigMap", "v1", "of-no-other-object"),
    "name": "kube-root-ca.crt",
    "controller": False,
}
"""A second owner, which each namespace has."""
COMMANDS: Final = (["a"], ["sh", "-c", "a"], ["sh", "-c", f"{STOP}; a"], ["sh", "-c", STOP, "a"])
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/main"
ISOLATION: Final = (
    *(APPARMOR, "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/main"),
    *("security.alpha.kubernetes.io/unsafe-sysctls", "io.kubernetes.cri-o.Devices", "io.kubernetes.cri-o.userns-mode"),
    *("seccomp-profile.kubernetes.cri-o.io/main", "cpu-load-balancing.crio.io", "io.containerd.rdt-class"),
    *("io.katacontainers.config.hypervisor.kernel", "dev.gvisor.spec.mount.a.source", "run.oci.handler"),
    *("devices.nri.io/container.main", "mounts.noderesource.dev/container.main", "cdi.k8s.io/any"),
)
"""Annotations that change the isolation of a pod."""
SOURCES: Final[tuple[Object, ...]] = (
    {"secret": {"secretName": "any"}},
    {"projected": {"sources": [{"secret": {"name": "any"}}]}},
    *(_projected(**item) for item in ({"key": "a"}, {"path": "a"}, {"mode": 511})),
    *({"emptyDir": each} for each in ({}, {"medium": "Memory"})),
)
"""Sources of a volume with allowed fields, but not with allowed values of all of them."""
STORAGE: Final = [{"metadata": {"name": "a"}, "spec": CLAIMED}]
OWN_MAP: Final = {"metadata": {"name": "child-connection"}}
OTHER_DATA: Final[tuple[Object, ...]] = ({"data": {"NODE_OPTIONS": "--require=/tmp/a"}}, {"binaryData": {"a": "YQ=="}})
"""Some change what a program runs, and clients may read all keys as their environment."""
CLIENTS: Final[Object] = {"from": [{"podSelector": {}}]}
TCP: Final = {"port": 80, "protocol": "TCP"}
OTHER_PORTS: Final[tuple[Object, ...]] = ({"protocol": "TCP"}, {**TCP, "endPort": 90}, {**TCP, "protocol": "UDP"})
EGRESS: Final[Object] = {"egress": [{}], "policyTypes": ["Ingress", "Egress"]}
ENDPOINTS: Final[tuple[Object, ...]] = (
    *({"port": "other"}, {"path": "/secrets"}, {"scheme": "http"}, {"bearerTokenSecret": {"name": "a", "key": "b"}}),
    {"tlsConfig": {"insecureSkipVerify": True}},
    {"tlsConfig": {"ca": {"secret": {"name": "a", "key": "password"}}}},
    {"tlsConfig": {"ca": {"configMap": {"name": "a", "key": "ca.crt"}}}},
    {"tlsConfig": {"keySecret": {"name": "a", "key": "tls.key"}}},
)
OTHER_LABEL: Final = {**CACHE_LABEL, "targetLabel": "pod"}
OWN_RULES: Final = rules_of(ACCOUNT_NAMESPACE, "new")
IN_SYSTEM_NAMESPACES: Final = (
    ("only its own labels in a namespace", template("labels", **{"k8s-app": "kube-dns"})),
    ("sets only default in a namespace", pod("serviceAccountName", "coredns")),
    ("sets only default in a namespace", pod("serviceAccount", "coredns")),
)
"""Changes of a Deployment that are denied only in the namespaces of Kubernetes."""

DENIED: Final[Table] = (
    *_of_each(
        "only with a controller reference",
        {"ownerReferences": None},
        {"ownerReferences": [{**owner(), "controller": False}]},
        {"ownerReferences": [owner("ConfigMap", "v1")]},
        {"ownerReferences": [owner("Memcached", "cache.example.com.evil.example.com/v1")]},
        {"ownerReferences": [owner("AppService", "cache.example.com/v1")]},
        {"ownerReferences": [owner("Memcached", "cache.example.com/v9")]},
        {"ownerReferences": [owner("v1/Memcached", "cache.example.com")]},
        {"ownerReferences": [owner("Memcached.cache", "example.com/v1")]},
    ),
    *_of_each("adds only a controller", {"ownerReferences": [owner(), OTHER_OWNER]}),
    *_of_each("only with app.kubernetes.io/managed-by", *({"labels": {MANAGED_BY: value}} for value in (None, "Helm"))),
    *_of_each("metadata.finalizers:", *({"finalizers": [each]} for each in ("example.com/held", "orphan"))),
    *_values("automountServiceAccountToken: ", DEPLOYMENTS, f"{POD}.automountServiceAccountToken", None),
    *_values("seccompProfile.type: ", DEPLOYMENTS, f"{POD}.{CONTEXT}", None),
    *_values("runAsUser: ", DEPLOYMENTS, f"{POD}.{CONTEXT}.runAsUser", 0),
    *_values("GracePeriodSeconds: ", DEPLOYMENTS, f"{POD}.terminationGracePeriodSeconds", 9, 86401),
    *_values("priorityClassName: ", DEPLOYMENTS, f"{POD}.priorityClassName", "system-a", "system-node-critical"),
    *_rule(
        "preStop.exec.command: ", DEPLOYMENTS, *(container("lifecycle.preStop.exec.command", each) for each in COMMANDS)
    ),
    *(
        row
        for part, change in IN_SYSTEM_NAMESPACES
        for row in _rule(part, DEPLOYMENTS, {"metadata": {"namespace": FOREIGN}, **change}, only_new=True)
    ),
    *_rule(
        "does not write other values of",
        DEPLOYMENTS,
        *(
            spec(selector={"matchLabels": {label: None}}, template={"metadata": {"labels": {label: value}}})
            for label, value in ((MANAGED_BY, "Helm"), (NAME, "coredns"), (MANAGED_BY, None))
        ),
        only_new=True,
    ),
    *_rule(
        "metadata.annotations: memcached-operator writes",
        DEPLOYMENTS,
        *(template("annotations", **{key: "runtime/default"}) for key in ISOLATION),
    ),
    *_values("spec.volumes: ", DEPLOYMENTS, f"{POD}.volumes", *([{"name": "all", **each}] for each in SOURCES)),
    *_selectors(DEPLOYMENTS, "selector"),
    *_selectors(POD_DISRUPTION_BUDGETS, "selector"),
    *_selectors(NETWORK_POLICIES, "podSelector"),
    *_selectors(POD_MONITORS, "selector"),
    *_values("spec.type: ", SERVICES, "type", "LoadBalancer"),
    *_rule("spec.type: ", SERVICES, spec(type="ExternalName", externalName="evil.example.com")),
    *_values("spec.externalIPs: ", SERVICES, "externalIPs", ["192.0.2.1"]),
    *_values(
        "spec.selector: memcached-operator sets", SERVICES, "selector", {MANAGED_BY: "Helm"}, {MANAGED_BY: None}, None
    ),
    *_values("volumeClaimTemplates", STATEFULSETS, "volumeClaimTemplates", STORAGE, only_new=True),
    *_values("spec.ordinals.start: ", STATEFULSETS, "ordinals", {"start": 5}),
    *_rule(
        "metadata.name: ",
        CONFIG_MAPS,
        *({"metadata": {"name": name}} for name in ("coredns-custom", "connection", "other-connection")),
        only_new=True,
    ),
    *_rule("only the addresses of servers", CONFIG_MAPS, *({**OWN_MAP, **each} for each in OTHER_DATA)),
    *_rule("sets only maxUnavailable, selector", POD_DISRUPTION_BUDGETS, spec(maxUnavailable=None, minAvailable=1)),
    *_values("spec.maxUnavailable: ", POD_DISRUPTION_BUDGETS, "maxUnavailable", None, 0, "0%", "00%"),
    *_values("spec.unhealthyPodEvictionPolicy: ", POD_DISRUPTION_BUDGETS, "unhealthyPodEvictionPolicy", None),
    *_rule("sets only ingress, podSelector", NETWORK_POLICIES, spec(**EGRESS)),
    *_values("spec.policyTypes: ", NETWORK_POLICIES, "policyTypes", ["Ingress", "Egress"], ["Egress"]),
    *_values("spec.ingress: ", NETWORK_POLICIES, "ingress", None, [], [{}], [{"ports": [TCP]}], [CLIENTS]),
    *_values("spec.ingress: ", NETWORK_POLICIES, "ingress", *([{**CLIENTS, "ports": [port]}] for port in OTHER_PORTS)),
    *_values("spec.ingress: ", NETWORK_POLICIES, "ingress", [{**CLIENTS, "ports": [TCP]}, {}]),
    *_values("sets only podMetricsEndpoints and selector", POD_MONITORS, "namespaceSelector", {"any": True}),
    *_values(
        "spec.podMetricsEndpoints: ",
        POD_MONITORS,
        "podMetricsEndpoints",
        *([{"port": "metrics", **each}] for each in ENDPOINTS),
    ),
    *_values("relabelings: ", POD_MONITORS, "podMetricsEndpoints", [{"port": "metrics", "relabelings": [OTHER_LABEL]}]),
    *_rule("sets only groups", PROMETHEUS_RULES, spec(other=1)),
    *_rule(
        "spec.groups: ",
        PROMETHEUS_RULES,
        _groups(rules=rules_of(ACCOUNT_NAMESPACE, "other")),
        _groups(rules=rules_of(FOREIGN, "new")),
        _groups(rules=[{**each, "expr": "vector(0)"} for each in OWN_RULES]),
        _groups(rules=[each | {"annotations": {"summary": '{{ query "up" }}'}} for each in OWN_RULES]),
        _groups(rules=OWN_RULES[:-1]),
        *(_groups(**each) for each in ({"interval": "1s"}, {"name": "other"})),
    ),
    *_rule(
        "only the Secret memcached-operator-webhook-cert",
        SECRETS,
        *({"metadata": each} for each in ({"name": "other"}, {"name": None, "generateName": "other-"})),
        {"type": None},
        {
            "metadata": {"annotations": {"kubernetes.io/service-account.name": ACCOUNT}},
            "type": "kubernetes.io/service-account-token",
        },
        only_new=True,
    ),
)

OTHER_SPEC: Final[dict[Resource, Object]] = {
    DEPLOYMENTS: spec(replicas=3),
    STATEFULSETS: spec(replicas=3),
    CONFIG_MAPS: {"data": {"servers": "b:1"}},
    SERVICES: spec(publishNotReadyAddresses=True),
    POD_DISRUPTION_BUDGETS: spec(maxUnavailable="100%"),
    NETWORK_POLICIES: spec(ingress=[{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [TCP]}]),
    POD_MONITORS: spec(podMetricsEndpoints=[{"port": "metrics", "interval": "30s"}]),
    PROMETHEUS_RULES: spec(groups=None),
}
"""A harmless change of each kind."""
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
TERM: Final[Object] = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
SPREAD: Final = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
ANNOTATIONS: Final = {
    "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "example.com/cri-o.io": "in the name, not in the prefix",
    "security.example.com/a": "b",
    "mycri-o.io/a": "b",
}
ALLOWED: Final[Table] = (
    *(Row(resource, change) for resource, change in OTHER_SPEC.items() if resource != CONFIG_MAPS),
    *(
        Row(DEPLOYMENTS, change)
        for change in (
            pod("", SWEPT),
            pod("nodeSelector", {"a": "b"}),
            pod("affinity", {"nodeAffinity": {}, "podAntiAffinity": {REQUIRED: [TERM]}}),
            pod("tolerations", [{"operator": "Exists"}]),
            pod("topologySpreadConstraints", [SPREAD]),
            pod("priorityClassName", "systems"),
            *(pod("terminationGracePeriodSeconds", seconds) for seconds in (10, 86400)),
            pod(CONTEXT, {"fsGroup": 0, "fsGroupChangePolicy": "Always", "supplementalGroups": [0]}),
            pod(f"{CONTEXT}.seccompProfile", {"type": "Localhost", "localhostProfile": "a"}),
            template("labels", **{"app": "other", "sidecar.istio.io/inject": "false"}),
            template("annotations", **ANNOTATIONS),
            *(change for _, change in IN_SYSTEM_NAMESPACES),
            spec(paused=True, minReadySeconds=5, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
            {**pod("", _args()), **container("lifecycle.preStop.exec.command", ["sh", "-c", STOP])},
        )
    ),
    Row(DEPLOYMENTS, {"metadata": {"namespace": FOREIGN}}, only_new=True),
    Row(STATEFULSETS, spec(updateStrategy={"type": "OnDelete", "rollingUpdate": None})),
    Row(SERVICES, {"metadata": {"labels": {"a": "b"}, "annotations": {"example.com/a": "b"}}}),
    Row(PROMETHEUS_RULES, _groups(), only_new=True),
)
"""Changes that users can request, and a child in a namespace of Kubernetes."""
ROWS: Final = (*FIELDS, *DENIED, *ALLOWED)
