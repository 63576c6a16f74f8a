"""The admission policies: placement of pods, PodDisruptionBudgets and NetworkPolicies, within limits."""

from collections.abc import Iterable

import pytest

from integration import confined
from integration.confined import (
    ACCOUNT_NAMESPACE,
    LABELS,
    MINIMAL,
    Account,
    container,
    deployment,
    dry_run,
    merged,
    nested,
    owner,
    pod,
    statefulset,
)
from integration.control_plane import ControlPlane
from integration.test_policy_templates import ARGS, WARM_STOP, args_file
from memcached_operator.kube.client import APPLY_PATCH
from memcached_operator.kube.labels import INSTANCE, MANAGED_BY, NAME
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
)

pytestmark = pytest.mark.server

CONTEXT = "securityContext"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SYSTEM = "kube-system"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/main"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
TERM: Object = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

WARM = pod(
    "",
    {
        "volumes": [{"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "80Mi"}}, args_file("args", ARGS)],
        "containers": [
            {
                "command": ["sh", "-c", "exec memcached"],
                "lifecycle": {"preStop": {"exec": {"command": WARM_STOP}}},
                "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
            }
        ],
    },
)
"""What a pod template with spec.cache.warmRestart contains in addition."""


def template(field: str, values: Object) -> Object:
    """A patch of the labels or annotations of a pod template."""
    return nested(f"spec.template.metadata.{field}", values)


ALLOWED: dict[str, tuple[Resource, Object]] = {
    "node selector": (DEPLOYMENTS, pod("nodeSelector", {"a": "b"})),
    "affinity": (DEPLOYMENTS, pod("affinity", {"nodeAffinity": {}, "podAntiAffinity": {REQUIRED: [TERM]}})),
    "tolerations": (DEPLOYMENTS, pod("tolerations", [{"operator": "Exists"}])),
    "spread": (DEPLOYMENTS, pod("topologySpreadConstraints", [SPREAD])),
    "priority": (DEPLOYMENTS, pod("priorityClassName", "systems")),
    "account": (DEPLOYMENTS, pod("serviceAccountName", "caches")),
    "shortest termination": (DEPLOYMENTS, pod("terminationGracePeriodSeconds", 10)),
    "longest termination": (DEPLOYMENTS, pod("terminationGracePeriodSeconds", 86400)),
    "user of the platform": (DEPLOYMENTS, pod(CONTEXT, {"runAsUser": None, "runAsGroup": None})),
    "file group": (DEPLOYMENTS, pod(CONTEXT, {"fsGroup": 0, "fsGroupChangePolicy": "Always"})),
    "other groups": (DEPLOYMENTS, pod(f"{CONTEXT}.supplementalGroups", [0])),
    "local seccomp profile": (
        DEPLOYMENTS,
        pod(f"{CONTEXT}.seccompProfile", {"type": "Localhost", "localhostProfile": "a"}),
    ),
    "labels": (DEPLOYMENTS, template("labels", {"app": "other", "sidecar.istio.io/inject": "false"})),
    "annotations": (
        DEPLOYMENTS,
        template(
            "annotations",
            {
                "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "example.com/cri-o.io": "in the name, not in the prefix",
                "security.example.com/a": "b",
                "mycri-o.io/a": "b",
            },
        ),
    ),
    "rollout": (
        DEPLOYMENTS,
        {
            "spec": {
                "paused": True,
                "minReadySeconds": 5,
                "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            }
        },
    ),
    "updates by the controller": (
        STATEFULSETS,
        {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
    ),
    "warm restart": (STATEFULSETS, WARM),
    "Service metadata": (SERVICES, {"metadata": {"labels": {"a": "b"}, "annotations": {"example.com/a": "b"}}}),
    "percentage": (POD_DISRUPTION_BUDGETS, {"spec": {"maxUnavailable": "100%"}}),
}
"""Changes of a child that users can request."""


@pytest.mark.parametrize(("resource", "change"), ALLOWED.values(), ids=ALLOWED.keys())
def test_what_users_can_request_is_allowed(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource, change: Object
) -> None:
    denials = confined.denials(stolen_token, resource, children[resource], change)
    assert denials == dict.fromkeys(denials, "")


ISOLATION = (
    APPARMOR,
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/main",
    "security.alpha.kubernetes.io/unsafe-sysctls",
    "io.kubernetes.cri-o.Devices",
    "io.kubernetes.cri-o.userns-mode",
    "seccomp-profile.kubernetes.cri-o.io/main",
    "cpu-load-balancing.crio.io",
    "io.containerd.rdt-class",
    "io.katacontainers.config.hypervisor.kernel",
    "dev.gvisor.spec.mount.a.source",
    "run.oci.handler",
    "devices.nri.io/container.main",
    "mounts.noderesource.dev/container.main",
    "cdi.k8s.io/any",
)
"""Annotations that change the isolation of a pod."""


@pytest.mark.parametrize("key", ISOLATION)
def test_annotation_that_changes_the_isolation_of_a_pod_is_denied(
    stolen_token: Account, children: dict[Resource, Object], key: str
) -> None:
    change = template("annotations", {key: "runtime/default"})
    denials = confined.denials(stolen_token, DEPLOYMENTS, children[DEPLOYMENTS], change)
    assert [operation for operation, denial in denials.items() if "metadata.annotations" not in denial] == [], denials


def creations(stolen_token: Account, resource: Resource, obj: Object) -> list[str]:
    """The denials of creating an object; empty strings if it is allowed."""
    works = (dry_run("POST", resource, obj), dry_run("PATCH", resource, obj, APPLY_PATCH))
    return [stolen_token.denial(work) for work in works]


@pytest.mark.parametrize(("label", "value"), [(MANAGED_BY, "Helm"), (NAME, "coredns"), (MANAGED_BY, None)])
def test_pods_keep_the_operators_labels(stolen_token: Account, label: str, value: str | None) -> None:
    other = merged(deployment("new"), template("labels", {label: value}))
    other = merged(other, nested("spec.selector.matchLabels", {label: None}))
    assert all("template.metadata.labels" in denial for denial in creations(stolen_token, DEPLOYMENTS, other))


WITHIN_TEMPLATE = {
    "pods without an operator": {NAME: "memcached", INSTANCE: "child"},
    "all of an operator": {MANAGED_BY: LABELS[MANAGED_BY]},
    "all of a kind": {NAME: "memcached", MANAGED_BY: LABELS[MANAGED_BY]},
    "pods with a user's label": {"app": "web"},
}
"""Labels that the pods of a Deployment can have in addition to, or as a part of, the operator's labels."""
SELECTORS = WITHIN_TEMPLATE | {
    "pods of another operator": {**LABELS, MANAGED_BY: "Helm"},
    "pods of another application": {**LABELS, NAME: "web"},
    "all pods": {},
}


@pytest.mark.parametrize("labels", WITHIN_TEMPLATE.values(), ids=WITHIN_TEMPLATE.keys())
def test_deployment_does_not_select_pods_of_others(stolen_token: Account, labels: dict[str, str]) -> None:
    obj = merged(deployment("new"), template("labels", labels))
    obj["spec"]["selector"] = {"matchLabels": labels}
    assert all("spec.selector" in denial for denial in creations(stolen_token, DEPLOYMENTS, obj))


@pytest.mark.parametrize("labels", SELECTORS.values(), ids=SELECTORS.keys())
@pytest.mark.parametrize(
    ("resource", "field"),
    [(POD_DISRUPTION_BUDGETS, "selector"), (NETWORK_POLICIES, "podSelector")],
    ids=["PodDisruptionBudget", "NetworkPolicy"],
)
def test_pods_of_others_are_not_selected(
    stolen_token: Account, resource: Resource, field: str, labels: dict[str, str]
) -> None:
    obj = MINIMAL[resource]("new")
    obj["spec"][field] = {"matchLabels": labels} if labels else {}
    assert all(f"spec.{field}" in denial for denial in creations(stolen_token, resource, obj))


@pytest.mark.parametrize(
    ("resource", "field"),
    [(DEPLOYMENTS, "selector"), (POD_DISRUPTION_BUDGETS, "selector"), (NETWORK_POLICIES, "podSelector")],
    ids=["Deployment", "PodDisruptionBudget", "NetworkPolicy"],
)
def test_selectors_have_no_expressions(stolen_token: Account, resource: Resource, field: str) -> None:
    expressions = [{"key": NAME, "operator": "Exists"}]
    obj = MINIMAL[resource]("new")
    obj["spec"][field] = {"matchLabels": LABELS, "matchExpressions": expressions}
    assert all(f"spec.{field}" in denial for denial in creations(stolen_token, resource, obj))


EGRESS: Object = {"egress": [{}], "policyTypes": ["Ingress", "Egress"]}
CLIENTS: list[Object] = [{"podSelector": {}}]
PORTS = [{"port": 80, "protocol": "TCP"}]
SPECS: dict[str, tuple[Resource, Object, str]] = {
    "budget: minAvailable": (POD_DISRUPTION_BUDGETS, {"maxUnavailable": None, "minAvailable": 1}, "spec: "),
    "budget: no limit": (POD_DISRUPTION_BUDGETS, {"maxUnavailable": None}, "spec.maxUnavailable"),
    "budget: no pod": (POD_DISRUPTION_BUDGETS, {"maxUnavailable": 0}, "spec.maxUnavailable"),
    "budget: 0%": (POD_DISRUPTION_BUDGETS, {"maxUnavailable": "0%"}, "spec.maxUnavailable"),
    "budget: 00%": (POD_DISRUPTION_BUDGETS, {"maxUnavailable": "00%"}, "spec.maxUnavailable"),
    "budget: default for unhealthy pods": (
        POD_DISRUPTION_BUDGETS,
        {"unhealthyPodEvictionPolicy": None},
        "spec.unhealthyPodEvictionPolicy",
    ),
    "slots: ordinals": (STATEFULSETS, {"ordinals": {"start": 5}}, "spec.ordinals.start"),
    "network: egress": (NETWORK_POLICIES, EGRESS, "spec: "),
    "network: no egress": (NETWORK_POLICIES, {"policyTypes": ["Ingress", "Egress"]}, "spec.policyTypes"),
    "network: only egress": (NETWORK_POLICIES, {"policyTypes": ["Egress"]}, "spec.policyTypes"),
    "network: no clients": (NETWORK_POLICIES, {"ingress": []}, "spec.ingress"),
    "network: no rule": (NETWORK_POLICIES, {"ingress": None}, "spec.ingress"),
    "network: everybody": (NETWORK_POLICIES, {"ingress": [{}]}, "spec.ingress"),
    "network: everybody to a port": (NETWORK_POLICIES, {"ingress": [{"ports": PORTS}]}, "spec.ingress"),
    "network: all ports": (NETWORK_POLICIES, {"ingress": [{"from": CLIENTS}]}, "spec.ingress"),
    "network: every TCP port": (
        NETWORK_POLICIES,
        {"ingress": [{"from": CLIENTS, "ports": [{"protocol": "TCP"}]}]},
        "spec.ingress",
    ),
    "network: port range": (
        NETWORK_POLICIES,
        {"ingress": [{"from": CLIENTS, "ports": [{"port": 1, "endPort": 9, "protocol": "TCP"}]}]},
        "spec.ingress",
    ),
    "network: UDP": (
        NETWORK_POLICIES,
        {"ingress": [{"from": CLIENTS, "ports": [{"port": 80, "protocol": "UDP"}]}]},
        "spec.ingress",
    ),
    "network: a second rule": (NETWORK_POLICIES, {"ingress": [{"from": CLIENTS, "ports": PORTS}, {}]}, "spec.ingress"),
}
"""Changes of a spec that the operator never writes, and the expected part of each denial."""


@pytest.mark.parametrize(("resource", "spec", "message"), SPECS.values(), ids=SPECS.keys())
def test_spec_that_is_never_built_is_denied(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource, spec: Object, message: str
) -> None:
    denials = confined.denials(stolen_token, resource, children[resource], {"spec": spec})
    assert [operation for operation, denial in denials.items() if message not in denial] == [], denials


def test_slots_have_no_volumes(stolen_token: Account) -> None:
    volumes = [{"metadata": {"name": "a"}, "spec": CLAIM}]
    claiming = merged(statefulset("any"), {"spec": {"volumeClaimTemplates": volumes}})
    assert "sets no volumeClaimTemplates" in stolen_token.denial(dry_run("POST", STATEFULSETS, claiming))


def test_egress_added_by_others_does_not_block_updates(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    key, reference = Key(NETWORK_POLICIES, ACCOUNT_NAMESPACE, "egress"), owner(uid=memcached["metadata"]["uid"])
    live = plane.create(NETWORK_POLICIES, merged(MINIMAL[NETWORK_POLICIES]("egress", reference), {"spec": EGRESS}))
    try:
        restored = merged(live, {"spec": {"policyTypes": ["Ingress"]}})
        assert not stolen_token.denial(dry_run("PUT", NETWORK_POLICIES, restored))
        other = merged(restored, {"spec": {"egress": [{"ports": PORTS}]}})
        assert "spec: " in stolen_token.denial(dry_run("PUT", NETWORK_POLICIES, other))
    finally:
        plane.delete(key)


def test_annotations_added_by_others_do_not_block_updates(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    key, reference = Key(DEPLOYMENTS, ACCOUNT_NAMESPACE, "annotated"), owner(uid=memcached["metadata"]["uid"])
    theirs = template("annotations", {APPARMOR: "unconfined"})
    live = plane.create(DEPLOYMENTS, merged(deployment("annotated", reference), theirs))
    try:
        changed = merged(live, container("image", "other:1"))
        assert not stolen_token.denial(dry_run("PUT", DEPLOYMENTS, changed))
        other = merged(changed, template("annotations", {APPARMOR: "localhost/a"}))
        assert "metadata.annotations" in stolen_token.denial(dry_run("PUT", DEPLOYMENTS, other))
    finally:
        plane.delete(key)


def in_system_namespace(obj: Object, *changes: Object) -> Object:
    """A child in kube-system."""
    for change in ({"metadata": {"namespace": SYSTEM}}, *changes):
        obj = merged(obj, change)
    return obj


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (template("labels", {"k8s-app": "kube-dns"}), "template.metadata.labels"),
        (pod("serviceAccountName", "coredns"), "serviceAccountName"),
        (pod("serviceAccount", "coredns"), "serviceAccountName"),
    ],
    ids=["labels", "account", "account in the deprecated field"],
)
def test_pods_in_system_namespaces_cannot_replace_those_of_the_cluster(
    stolen_token: Account, change: Object, message: str
) -> None:
    plain = in_system_namespace(deployment("new"))
    assert creations(stolen_token, DEPLOYMENTS, plain) == ["", ""]
    denials = creations(stolen_token, DEPLOYMENTS, merged(plain, change))
    assert [denial for denial in denials if message not in denial] == []
    allowed = merged(deployment("new"), change)
    assert creations(stolen_token, DEPLOYMENTS, allowed) == ["", ""], "in another namespace"


def test_labels_added_by_others_in_system_namespaces_do_not_block_updates(
    plane: ControlPlane, stolen_token: Account
) -> None:
    theirs = template("labels", {"team": "a"})
    config_map = plane.create(CONFIG_MAPS, {"metadata": {"generateName": "owner-", "namespace": SYSTEM}})["metadata"]
    # The garbage collector deletes objects of owners that do not exist, but not if another owner does.
    other_owner = {**owner("ConfigMap", "v1", config_map["uid"]), "name": config_map["name"], "controller": False}
    references = {"metadata": {"ownerReferences": [owner(), other_owner]}}
    live = plane.create(DEPLOYMENTS, in_system_namespace(deployment("labelled"), references, theirs))
    try:
        changed = merged(live, container("image", "other:1"))
        assert not stolen_token.denial(dry_run("PUT", DEPLOYMENTS, changed))
        other = merged(changed, template("labels", {"team": "b"}))
        assert "template.metadata.labels" in stolen_token.denial(dry_run("PUT", DEPLOYMENTS, other))
    finally:
        plane.delete(Key(DEPLOYMENTS, SYSTEM, "labelled"))
        plane.delete(Key(CONFIG_MAPS, SYSTEM, config_map["name"]))


def entries(prefix: str, length: int, count: int = 64) -> list[str]:
    """Different texts of this length."""
    return [f"{prefix}{number:02}".ljust(length, "x") for number in range(count)]


def keys(count: int = 64) -> Iterable[str]:
    """The longest keys of labels and annotations."""
    return (f"{domain}/{'n' * 63}" for domain in entries("a", 50, count))


def test_largest_template_is_within_the_cost_limit_of_policies(stolen_token: Account) -> None:
    long = dict.fromkeys(keys(), "v" * 63)
    selector = {"matchLabels": long, "matchExpressions": [{"key": key, "operator": "Exists"} for key in keys()]}
    term = {"topologyKey": "zone", "labelSelector": selector, "namespaces": entries("n", 63)}
    tolerations = [{"key": key, "value": "v" * 63, "effect": "NoExecute"} for key in keys()]
    largest: Object = {
        "nodeSelector": long,
        "tolerations": tolerations,
        "affinity": {"podAffinity": {REQUIRED: [term] * 8}},
        "topologySpreadConstraints": [{**SPREAD, "topologyKey": key, "labelSelector": selector} for key in keys(16)],
    }
    environment = [{"name": f"E{number}", "value": "v" * 100} for number in range(1000)]
    largest["containers"] = [{"env": environment}]
    obj = merged(merged(deployment("new"), pod("", largest)), template("labels", long))
    obj = merged(obj, template("annotations", dict.fromkeys(keys(), "v" * 3000)))
    assert creations(stolen_token, DEPLOYMENTS, obj) == ["", ""]
