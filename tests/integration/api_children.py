"""Scripts about the children of a Memcached and an AppService: requests of the operator and edits of users."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from integration.api_steps import (
    NAMESPACE,
    OPERATOR,
    PATCH,
    STRATEGIC,
    Content,
    Seen,
    Step,
    applied,
    changed,
    create,
    delete,
    get,
    options,
    patch,
    put,
)
from memcached_api.images import Images
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.engine.writes.ownership import preparation_patch, scale_patch
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.field_managers import takeover
from memcached_operator.kube.resource import Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.snapshot import Snapshot

IMAGES: Final = Images("example.com/memcached:1", "example.com/agent:1")


ANOTHER: Final[Object] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other", "controller": True}
"""A reference to another owner."""


def owner(resource: Resource, spec: Object) -> Object:
    """An object of one of our kinds, as if it were stored."""
    uid = "00000000-0000-4000-8000-000000000001"
    meta = {"name": "cache", "namespace": NAMESPACE, "uid": uid, "generation": 1}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}


def children(spec: Object, resource: Resource = MEMCACHEDS) -> dict[str, Object]:
    """The children that the operator builds, by kind (and name, if it is another than the object's)."""
    kind = memcached(IMAGES) if resource == MEMCACHEDS else appservice()
    cr = owner(resource, spec)
    found = kind.plan(Snapshot(cr), datetime(2030, 1, 1, tzinfo=UTC)).children or ()
    built = [build_intent(cr, child) for child in found]
    return {child["kind"] + child["metadata"]["name"].removeprefix("cache"): child for child in built}


IMAGE: Final = "example.com/app:1"
PLAIN: Final[Object] = {"image": IMAGE, "size": 2, "podDisruptionBudget": {}, "networkPolicy": {}}
MONITORED: Final[Object] = {**PLAIN, "monitoring": {"podMonitor": {}, "rules": {}}}
STABLE: Final[Object] = {**PLAIN, "identity": "Stable", "service": {"perPod": True}, "rollout": {"warmUp": {}}}
APP: Final[Object] = {"image": IMAGE, "size": 2, "ports": [{"port": 80, "name": "http"}]}
RESOURCES: Final[Mapping[str, Resource]] = {
    "Deployment": kinds.DEPLOYMENTS,
    "StatefulSet": kinds.STATEFULSETS,
    "Service": kinds.SERVICES,
    "ConfigMap": kinds.CONFIG_MAPS,
    "PodDisruptionBudget": kinds.POD_DISRUPTION_BUDGETS,
    "NetworkPolicy": kinds.NETWORK_POLICIES,
    "PodMonitor": kinds.POD_MONITORS,
}
EDITS: Final[Mapping[str, Object]] = {
    "Deployment": {"spec": {"template": {"spec": {"automountServiceAccountToken": True}}}},
    "StatefulSet": {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}},
    "Service": {"spec": {"selector": {"app.kubernetes.io/instance": "another"}}},
    "ConfigMap": {"data": {"servers": "elsewhere:11211"}},
    "PodDisruptionBudget": {"spec": {"maxUnavailable": 2}},
    "NetworkPolicy": {"spec": {"ingress": [{}]}},
    "PodMonitor": {"spec": {"podMetricsEndpoints": [{"port": "other"}]}},
}
"""A change of each kind of child by a user."""


def life(child: Object) -> list[Step]:
    """The requests of the operator and of users about a child, from its creation to its deletion."""
    name, resource = child["metadata"]["name"], RESOURCES[child["kind"]]

    def prepared(seen: Seen) -> Any:
        return preparation_patch(child, seen[-1])

    def with_uid(extra: Object) -> Content:
        def built(seen: Seen) -> Object:
            meta = {**extra["metadata"], "uid": seen[0]["metadata"]["uid"]}
            return {**extra, "metadata": meta}

        return built

    unlabelled = changed(child, "metadata", "labels", "app.kubernetes.io/component", value=None)
    noted = {"metadata": {"annotations": {"example.com/note": "foreign"}}}
    return [
        create(resource, child, OPERATOR),
        create(resource, child, OPERATOR),
        patch(resource, name, noted),
        get(resource, name),
        patch(resource, name, prepared, PATCH, manager=OPERATOR),
        applied(resource, name, with_uid(child)),
        applied(resource, name, with_uid(child)),
        patch(resource, name, EDITS[child["kind"]]),
        applied(resource, name, with_uid(child), force=False),
        get(resource, name),
        patch(resource, name, prepared, PATCH, manager=OPERATOR),
        applied(resource, name, with_uid(child)),
        patch(resource, name, {"metadata": {"labels": {"app.kubernetes.io/managed-by": "changed"}}}),
        applied(resource, name, with_uid(unlabelled)),
        applied(resource, name, with_uid(child), dryRun="All"),
        patch(resource, name, {"metadata": {"annotations": {"example.com/note": None}}}),
        patch(resource, name, {"metadata": {"ownerReferences": None}}),
        applied(resource, name, with_uid(child)),
        patch(resource, name, {"metadata": {"finalizers": ["example.com/held"]}}),
        delete(resource, name, options(4)),
        applied(resource, name, with_uid(child)),
        get(resource, name),
        patch(resource, name, [{"op": "remove", "path": "/metadata/finalizers"}], PATCH),
        get(resource, name),
        applied(resource, name, with_uid(child)),
    ]


def _lives() -> dict[str, list[Step]]:
    specs = {"plain": PLAIN, "monitored": MONITORED, "stable": STABLE}
    found = {
        f"life/{name}/{kind}": life(child)
        for name, spec in specs.items()
        for kind, child in children(spec).items()
        if child["kind"] in RESOURCES
    }
    return found | {f"life/app/{kind}": life(child) for kind, child in children(APP, APPSERVICES).items()}


def _deployments() -> dict[str, list[Step]]:
    deployment = children(PLAIN)["Deployment"]
    other = children({**PLAIN, "image": "example.com/app:2", "cache": {"memory": "128Mi"}})["Deployment"]
    scaled = children({**PLAIN, "size": 5})["Deployment"]
    status = {"observedGeneration": 1, "replicas": 2, "readyReplicas": 0, "updatedReplicas": 2}
    condition = {"type": "Available", "status": "True", "reason": "a", "message": "b"}
    times = {"lastUpdateTime": "2030-01-01T00:00:00Z", "lastTransitionTime": "2030-01-01T00:00:00Z"}

    def of_controller(seen: Seen) -> Object:
        obj = changed(seen[0], "status", value={**status, "conditions": [{**condition, **times}]})
        meta = obj["metadata"]
        annotations = {**meta["annotations"], "deployment.kubernetes.io/revision": "1"}
        return {**obj, "metadata": {**meta, "annotations": annotations, "labels": {}}, "spec": {"replicas": 9}}

    def taken_over(seen: Seen) -> Any:
        return takeover(seen[-2], seen[-1])

    def copied(obj: Object) -> Object:
        meta = {name: obj["metadata"][name] for name in ("name", "namespace", "labels", "annotations")}
        return {**obj, "metadata": meta}

    return {
        "deployment/rollout": [
            create(kinds.DEPLOYMENTS, deployment, OPERATOR),
            put(kinds.DEPLOYMENTS, "cache", of_controller, "status", "kube-controller-manager"),
            patch(kinds.DEPLOYMENTS, "cache", lambda seen: preparation_patch(other, seen[-1]), PATCH, manager=OPERATOR),
            applied(kinds.DEPLOYMENTS, "cache", other),
            patch(kinds.DEPLOYMENTS, "cache", lambda seen: scale_patch(scaled, seen[-1]), PATCH, manager=OPERATOR),
            applied(kinds.DEPLOYMENTS, "cache", scaled),
            patch(kinds.DEPLOYMENTS, "cache", {"spec": {"replicas": 0}}),
            patch(kinds.DEPLOYMENTS, "cache", {"spec": {"replicas": 7, "paused": True}}),
            applied(kinds.DEPLOYMENTS, "cache", scaled, force=False),
            applied(kinds.DEPLOYMENTS, "cache", scaled, "another", force=False),
            applied(kinds.DEPLOYMENTS, "cache", deployment),
            patch(kinds.DEPLOYMENTS, "cache", {"spec": {"replicas": 3}}, subresource="scale"),
            get(kinds.DEPLOYMENTS, "cache", "scale"),
            get(kinds.DEPLOYMENTS, "cache"),
        ],
        "deployment/another-owner": [
            create(kinds.DEPLOYMENTS, deployment, OPERATOR),
            patch(kinds.DEPLOYMENTS, "cache", {"metadata": {"ownerReferences": [ANOTHER]}}),
            patch(kinds.DEPLOYMENTS, "cache", lambda seen: preparation_patch(other, seen[0]), PATCH, manager=OPERATOR),
            patch(kinds.DEPLOYMENTS, "cache", lambda seen: scale_patch(scaled, seen[0]), PATCH, manager=OPERATOR),
            applied(kinds.DEPLOYMENTS, "cache", other),
            get(kinds.DEPLOYMENTS, "cache"),
        ],
        "deployment/copy": [
            create(kinds.DEPLOYMENTS, copied(deployment)),
            applied(kinds.DEPLOYMENTS, "cache", deployment, dryRun="All"),
            patch(kinds.DEPLOYMENTS, "cache", taken_over, PATCH, manager=OPERATOR),
            applied(kinds.DEPLOYMENTS, "cache", deployment),
            applied(kinds.DEPLOYMENTS, "cache", changed(deployment, "spec", "template", "spec", "volumes", value=None)),
        ],
    }


def _rejected() -> dict[str, list[Step]]:
    deployment, replica = children(PLAIN)["Deployment"], children(STABLE)["StatefulSet"]
    return {
        "deployment/immutable": [
            create(kinds.DEPLOYMENTS, deployment, OPERATOR),
            patch(kinds.DEPLOYMENTS, "cache", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
            patch(kinds.DEPLOYMENTS, "cache", {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
            patch(kinds.DEPLOYMENTS, "cache", {"metadata": {"uid": "00000000-0000-4000-8000-00000000000f"}}),
            applied(kinds.DEPLOYMENTS, "cache", changed(deployment, "metadata", "uid", value="other")),
            patch(kinds.DEPLOYMENTS, "cache", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}}),
            patch(kinds.DEPLOYMENTS, "missing", {"spec": {"replicas": 1}}),
            applied(kinds.DEPLOYMENTS, "missing", changed(deployment, "metadata", "uid", value="other")),
            applied(kinds.DEPLOYMENTS, "missing", deployment),
            put(kinds.DEPLOYMENTS, "cache", lambda seen: changed(seen[0], "metadata", "uid", value="other")),
            patch(kinds.DEPLOYMENTS, "cache", [{"op": "test", "path": "/metadata/uid", "value": "other"}], PATCH),
            patch(kinds.DEPLOYMENTS, "cache", [{"op": "replace", "path": "/spec/missing/x", "value": 1}], PATCH),
        ],
        "statefulset/immutable": [
            create(kinds.STATEFULSETS, replica, OPERATOR),
            patch(kinds.STATEFULSETS, "cache", {"spec": {"serviceName": "other"}}),
            patch(kinds.STATEFULSETS, "cache", {"spec": {"podManagementPolicy": "OrderedReady"}}),
            patch(kinds.STATEFULSETS, "cache", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
            patch(kinds.STATEFULSETS, "cache", {"spec": {"ordinals": {"start": 2}, "replicas": 4}}),
            patch(kinds.STATEFULSETS, "cache", {"spec": {"updateStrategy": {"type": "RollingUpdate"}}}),
            patch(kinds.STATEFULSETS, "cache", {"spec": {"updateStrategy": {"type": "OnDelete"}}}),
            patch(
                kinds.STATEFULSETS, "cache", lambda seen: preparation_patch(replica, seen[-1]), PATCH, manager=OPERATOR
            ),
            applied(kinds.STATEFULSETS, "cache", replica),
        ],
        "workload/strategic": [
            create(kinds.DEPLOYMENTS, deployment),
            patch(kinds.DEPLOYMENTS, "cache", _containers({"name": "memcached", "image": "other:1"}), STRATEGIC),
            patch(kinds.DEPLOYMENTS, "cache", _containers({"name": "sidecar", "image": "other"}), STRATEGIC),
            patch(kinds.DEPLOYMENTS, "cache", _containers({"name": "sidecar", "$patch": "delete"}), STRATEGIC),
            patch(kinds.DEPLOYMENTS, "cache", {"metadata": {"finalizers": ["example.com/a"]}}, STRATEGIC),
            patch(
                kinds.DEPLOYMENTS, "cache", {"metadata": {"finalizers": ["example.com/b"], "labels": None}}, STRATEGIC
            ),
        ],
    }


def _containers(*found: Object) -> Object:
    return {"spec": {"template": {"spec": {"containers": list(found)}}}}


def _services() -> dict[str, list[Step]]:
    headless, plain = children(PLAIN)["Service"], children(APP, APPSERVICES)["Service"]
    foreign = {"metadata": {"name": "cache"}, "spec": {"selector": {"a": "b"}, "ports": [{"name": "f", "port": 9}]}}
    node_port = changed(plain, "spec", "type", value="NodePort")

    def with_version(seen: Seen) -> Object:
        meta = {name: seen[0]["metadata"][name] for name in ("uid", "resourceVersion")}
        return {**headless, "metadata": {**headless["metadata"], **meta}}

    def replaced(seen: Seen) -> Object:
        spec = {**seen[-1]["spec"], "ports": [{"name": "a", "port": 81}]}
        return {**seen[-1], "spec": {name: value for name, value in spec.items() if name != "clusterIP"}}

    return {
        "service/foreign": [
            create(kinds.SERVICES, foreign),
            applied(kinds.SERVICES, "cache", headless),
            applied(kinds.SERVICES, "cache", plain),
            patch(kinds.SERVICES, "cache", {"spec": {"clusterIP": "None"}}),
            patch(kinds.SERVICES, "cache", {"spec": {"clusterIP": None}}),
            put(kinds.SERVICES, "cache", replaced),
        ],
        "service/headless": [
            create(kinds.SERVICES, {**headless, "spec": {**headless["spec"], "selector": None}}),
            patch(kinds.SERVICES, "cache", {"spec": {"clusterIP": None, "clusterIPs": None}}),
            patch(kinds.SERVICES, "cache", {"metadata": {"annotations": {"a": "b"}}}),
            applied(kinds.SERVICES, "cache", with_version),
        ],
        "service/types": [
            create(kinds.SERVICES, node_port, OPERATOR),
            patch(kinds.SERVICES, "cache", lambda seen: preparation_patch(plain, seen[-1]), PATCH, manager=OPERATOR),
            applied(kinds.SERVICES, "cache", plain),
            applied(kinds.SERVICES, "cache", node_port),
            patch(kinds.SERVICES, "cache", {"spec": {"type": "LoadBalancer"}}),
            patch(kinds.SERVICES, "cache", {"spec": {"type": "ClusterIP"}}),
            patch(kinds.SERVICES, "cache", {"spec": {"sessionAffinity": "ClientIP"}}),
        ],
    }


SCRIPTS: Final[Mapping[str, list[Step]]] = {**_lives(), **_deployments(), **_rejected(), **_services()}
