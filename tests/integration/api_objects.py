"""Scripts about objects that are not children: custom resources, pods, and the objects of users and controllers."""

from collections.abc import Mapping
from typing import Any, Final

from integration.api_children import APP, IMAGE, PLAIN, children
from integration.api_steps import (
    MERGE,
    NAMESPACE,
    NOTHING,
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
    listed,
    options,
    patch,
    put,
)
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SECRETS,
    Object,
    Resource,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from simulation.api import kinds
from simulation.api.kinds import SERVICE_ACCOUNTS as ACCOUNTS


def _custom_resources() -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for resource, spec, other in ((MEMCACHEDS, PLAIN, {"size": 3, "image": "b"}), (APPSERVICES, APP, {"size": 3})):
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}, "spec": spec}
        condition = {"type": "Ready", "status": "True", "reason": "A", "message": "b", "observedGeneration": 1}
        now = {"lastTransitionTime": "2030-01-01T00:00:00Z"}
        status: Object = {"observedGeneration": 1, "replicas": 2, "conditions": [{**condition, **now}], "nodes": ["a"]}
        more = {**status, "nodes": ["b", "c"], "conditions": [{**condition, **now, "type": "Available"}]}

        def reported(content: Object) -> Content:
            return lambda seen: {"metadata": {"uid": seen[0]["metadata"]["uid"]}, "status": content}

        def whole(seen: Seen) -> Object:
            return {**changed(seen[-1], "spec", "size", value=9), "status": {"replicas": 7}}

        found[resource.plural] = [
            create(resource, {**body, "status": {"replicas": 4}}),
            create(resource, {**body, "metadata": {"name": "y"}, "unknown": 1, "spec": {**spec, "unknown": {"a": 1}}}),
            create(resource, {**body, "metadata": {"name": "z"}, "spec": {"image": IMAGE}}),
            patch(resource, "x", {"spec": other}),
            patch(resource, "x", reported(status), subresource="status", manager=OPERATOR),
            patch(resource, "x", reported(status), subresource="status", manager=OPERATOR),
            patch(resource, "x", reported(more), subresource="status", manager=OPERATOR),
            patch(resource, "x", {**reported({"nodes": []})([{"metadata": {"uid": "other"}}])}, subresource="status"),
            patch(resource, "x", {"status": {"replicas": 99}}),
            put(resource, "x", body),
            get(resource, "x"),
            put(resource, "x", whole),
            get(resource, "x"),
            put(resource, "x", whole, "status"),
            get(resource, "x", "scale"),
            patch(resource, "x", {"spec": {"replicas": 6}}, subresource="scale"),
            applied(resource, "x", body, "gitops", force=False),
            applied(resource, "x", body, "gitops"),
            applied(resource, "x", {**body, "spec": {"image": IMAGE}}, "gitops"),
            applied(resource, "x", {**body, "metadata": {"labels": {"a": "b"}}, "spec": None}, "gitops"),
            patch(resource, "x", {"metadata": {"labels": {"a": "c"}, "annotations": {"d": "e"}}}),
            patch(resource, "x", {"metadata": {"labels": None}}),
            patch(resource, "x", {"metadata": {"finalizers": ["example.com/held"]}}),
            delete(resource, "x", {"propagationPolicy": "Foreground"}),
            get(resource, "x"),
            delete(resource, "x", {"propagationPolicy": "Background"}),
            patch(resource, "x", {"spec": {"size": 4}}),
            patch(resource, "x", {"metadata": {"finalizers": ["example.com/held", "example.com/new"]}}),
            patch(resource, "x", {"metadata": {"finalizers": None}}),
            get(resource, "x"),
            delete(resource, "y", {"propagationPolicy": "Orphan"}),
            get(resource, "y"),
            create(resource, {**body, "metadata": {"name": "y"}}),
            patch(resource, "y", [{"op": "remove", "path": "/metadata/finalizers"}], PATCH),
            delete(resource, "z"),
            delete(resource),
            listed(resource),
        ]
    return found


def _pods() -> dict[str, list[Step]]:
    account = create(ACCOUNTS, {"metadata": {"name": "default"}})
    container = {"name": "a", "image": "b", "resources": {"requests": {"cpu": "1m"}, "limits": {"memory": "1Mi"}}}
    spec = {"automountServiceAccountToken": False, "containers": [container]}
    body = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": spec}
    bound = {**body, "metadata": {"name": "q"}, "spec": {**spec, "nodeName": "node"}}
    resized = {"spec": {"containers": [{"name": "a", "resources": {"limits": {"memory": "2Mi"}}}]}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    running: Object = {
        "phase": "Running",
        "conditions": [ready],
        "containerStatuses": [{"name": "a", "image": "b", "imageID": "c", "ready": True, "restartCount": 0}],
    }

    def versioned(content: Object) -> Content:
        def built(seen: Seen) -> Object:
            meta = {name: seen[1]["metadata"][name] for name in ("uid", "resourceVersion")}
            return {**content, "metadata": {**content.get("metadata", {}), **meta}}

        return built

    changed_image = {"spec": {"containers": [{"name": "a", "image": "c"}]}, "metadata": {"annotations": {"x": "y"}}}
    return {
        "pods": [
            account,
            create(PODS, body),
            patch(PODS, "p", versioned(changed_image), STRATEGIC, manager=OPERATOR),
            patch(PODS, "p", versioned(changed_image), STRATEGIC, manager=OPERATOR),
            patch(PODS, "p", resized, STRATEGIC, "resize", OPERATOR),
            patch(PODS, "p", {"status": running}, subresource="status", manager="kubelet"),
            patch(PODS, "p", {"status": {"conditions": [{"type": "Other", "status": "False"}]}}, STRATEGIC, "status"),
            patch(PODS, "p", {"metadata": {"annotations": {"x": None, "z": "1"}}}, STRATEGIC),
            create(PODS, {**body, "metadata": {"generateName": "gen-"}}),
            create(PODS, bound),
            delete(PODS, "q", {"gracePeriodSeconds": 20, "preconditions": {"uid": "other"}}),
            delete(PODS, "q", {"gracePeriodSeconds": 20}),
            delete(PODS, "q"),
            patch(PODS, "q", {"metadata": {"labels": {"c": "d"}}}),
            delete(PODS, "q", {"gracePeriodSeconds": 0}),
            get(PODS, "q"),
            delete(PODS, "p"),
            get(PODS, "p"),
        ],
        "pods/resize": [account, *_resizes()],
    }


def _resizes() -> list[Step]:
    """Changes of the amounts and images of a pod with several containers, and what the API server rejects."""
    amounts: Object = {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"memory": "1Mi"}}
    names = ("z", "m", "a")
    containers = [{"name": name, "image": "b", "resources": amounts} for name in names]
    helper = {"name": "helper", "image": "b", "restartPolicy": "Always", "resources": amounts}
    spec = {"automountServiceAccountToken": False, "containers": containers, "initContainers": [helper]}

    def changes(field: str, value: Any, *names: str, lists: str = "containers") -> Object:
        return {"spec": {lists: [{"name": name, field: value} for name in names]}}

    def resize(resources: Object, *names: str, lists: str = "containers") -> Step:
        return patch(PODS, "p", changes("resources", resources, *names, lists=lists), STRATEGIC, "resize", OPERATOR)

    more, limit = {"requests": {"cpu": "2m"}}, {"limits": {"cpu": "9m"}}
    guaranteed = {"requests": {"cpu": "9m"}, "limits": {"cpu": "9m"}}
    return [
        create(PODS, {"metadata": {"name": "p"}, "spec": spec}),
        resize(more, "z", "a"),
        resize(more, "a", "z"),
        resize(more, "a", "m"),
        resize(limit, "m"),
        resize({"limits": {"cpu": None}}, "m"),
        resize({"limits": {"cpu": None}, "requests": None}, "m"),
        resize({"requests": {"ephemeral-storage": "1Mi"}}, "z"),
        resize(limit, "helper", lists="initContainers"),
        resize({"limits": {"cpu": None}}, "helper", lists="initContainers"),
        resize(guaranteed, "helper", lists="initContainers"),
        resize(guaranteed, "z", "m", "a"),
        patch(PODS, "p", changes("image", "c", "z", "a"), STRATEGIC, manager=OPERATOR),
        patch(PODS, "p", changes("image", "d", "a", "z"), STRATEGIC, manager=OPERATOR),
        patch(PODS, "p", changes("command", ["e"], "z"), STRATEGIC, manager=OPERATOR),
        get(PODS, "p"),
    ]


def _leases() -> dict[str, list[Step]]:
    lease = {"metadata": {"name": "lock"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
    lease["spec"] |= {"acquireTime": "2030-01-01T00:00:00.000000Z", "renewTime": "2030-01-01T00:00:00.000000Z"}

    def renewed(seen: Seen) -> Object:
        return changed(seen[-1], "spec", "holderIdentity", value="b")

    return {
        "lease": [
            get(LEASES, "lock"),
            create(LEASES, lease),
            put(LEASES, "lock", renewed),
            put(LEASES, "lock", lambda seen: seen[1]),
            put(LEASES, "lock", lease),
            put(LEASES, "missing", changed(lease, "metadata", "name", value="missing")),
            put(LEASES, "lock", lambda seen: changed(seen[2], "metadata", "name", value="missing")),
        ],
    }


def _events() -> dict[str, list[Step]]:
    event: Object = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "cache.1", "namespace": NAMESPACE},
        "involvedObject": {"kind": "Memcached", "name": "cache", "namespace": NAMESPACE, "uid": "u"},
        "type": "Normal",
        "reason": "A",
        "message": "b",
        "source": {"component": "memcached-operator"},
        "reportingComponent": "memcached-operator",
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
        "count": 1,
    }
    return {
        "events": [
            create(EVENTS, event, OPERATOR),
            listed(EVENTS, fieldSelector="involvedObject.name=cache,involvedObject.kind=Memcached"),
            listed(EVENTS, fieldSelector="involvedObject.name=other"),
        ],
    }


_SETTINGS: Final[Object] = {"metadata": {"name": "c"}, "data": {"a": "1", "b": ""}}


def _config_maps() -> dict[str, list[Step]]:
    return {
        "configmap": [
            create(CONFIG_MAPS, _SETTINGS),
            create(CONFIG_MAPS, _SETTINGS, dryRun="All"),
            create(CONFIG_MAPS, {**_SETTINGS, "metadata": {"name": "d"}}, dryRun="All"),
            get(CONFIG_MAPS, "d"),
            patch(CONFIG_MAPS, "c", {"data": {"a": None, "c": "3"}}),
            patch(CONFIG_MAPS, "c", {"data": {"c": "3"}}, manager="other"),
            patch(CONFIG_MAPS, "c", {"metadata": {"managedFields": [NOTHING]}}),
            patch(CONFIG_MAPS, "c", {"data": {"d": "4"}}),
            applied(CONFIG_MAPS, "c", _config_map(e="5")),
            applied(CONFIG_MAPS, "c", _config_map(f="6")),
            applied(CONFIG_MAPS, "c", _config_map(f="7"), "another", force=False),
            applied(CONFIG_MAPS, "c", _config_map(f="6"), "another", force=False),
            applied(CONFIG_MAPS, "c", _config_map(g="7")),
            put(CONFIG_MAPS, "c", {**_SETTINGS, "data": {"z": "1"}}),
            applied(CONFIG_MAPS, "new", {**_config_map(a="1"), "metadata": {}}),
            applied(CONFIG_MAPS, "new", _config_map(a="1", name="wrong")),
            applied(CONFIG_MAPS, "new", _config_map(a="1", name="new", namespace="wrong")),
            create(CONFIG_MAPS, {"data": {}}),
            create(CONFIG_MAPS, {"metadata": {"name": "e", "finalizers": ["example.com/a"], "labels": {}}}),
            delete(CONFIG_MAPS, "c", options(0, version=0)),
            delete(CONFIG_MAPS, "c", {"preconditions": {"uid": "other"}}),
            delete(CONFIG_MAPS, "c", options(0)),
            delete(CONFIG_MAPS, "c", options(0)),
        ],
    }


def _secrets_and_budgets() -> dict[str, list[Step]]:
    budget = {"metadata": {"name": "theirs"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    return {
        "secret": [
            create(SECRETS, {"metadata": {"name": "s"}, "type": "kubernetes.io/tls", "data": _PAIR}),
            create(SECRETS, {"metadata": {"name": "t"}, "data": {"a": "YQ=="}}),
            patch(SECRETS, "t", {"metadata": {"annotations": {"a": None}}, "data": {"b": "Yg=="}}),
        ],
        "budget": [
            create(POD_DISRUPTION_BUDGETS, budget),
            patch(POD_DISRUPTION_BUDGETS, "theirs", {"spec": {"maxUnavailable": 1}}),
            patch(POD_DISRUPTION_BUDGETS, "theirs", {"spec": {"selector": {"matchLabels": {"c": "d"}}}}),
            put(POD_DISRUPTION_BUDGETS, "theirs", budget),
            patch(POD_DISRUPTION_BUDGETS, "theirs", {"status": {"currentHealthy": 1}}, MERGE, "status", "controller"),
        ],
    }


def _places() -> dict[str, list[Step]]:
    return {
        "places": [
            Step("POST", CONFIG_MAPS.path("missing"), _SETTINGS),
            Step("POST", CONFIG_MAPS.path(NAMESPACE), {**_SETTINGS, "metadata": {"name": "a", "namespace": "other"}}),
            Step("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/things"),
            Step("GET", "/apis/example.com/v1/things"),
            Step("GET", f"/apis/cache.example.com/v1/namespaces/{NAMESPACE}/memcacheds/x/things"),
            Step("GET", f"/apis/cache.example.com/v1/namespaces/{NAMESPACE}/things/x"),
            Step("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/x/things"),
            get(CONFIG_MAPS, "missing"),
            get(MEMCACHEDS, "missing"),
        ],
    }


_PAIR: Final = {"tls.crt": "YQ==", "tls.key": "Yg=="}


def _config_map(name: str = "c", namespace: str = NAMESPACE, **data: str) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _reads() -> dict[str, list[Step]]:
    made = [create(CONFIG_MAPS, {"metadata": {"name": f"c{each}", "labels": {"n": str(each)}}}) for each in range(4)]

    def following(seen: Seen) -> Mapping[str, str]:
        return {"limit": "2", "continue": seen[-1]["metadata"]["continue"]}

    def since(index: int, **query: str) -> Step:
        def built(seen: Seen) -> Mapping[str, str]:
            return {"resourceVersion": seen[index]["metadata"]["resourceVersion"], **query}

        return Step("WATCH", CONFIG_MAPS.path(NAMESPACE), query=built)

    return {
        "lists": [
            *made,
            listed(CONFIG_MAPS, limit="2"),
            listed(CONFIG_MAPS, labelSelector="n in (1,2),!m"),
            listed(CONFIG_MAPS, limit="2"),
            Step("GET", CONFIG_MAPS.path(NAMESPACE), query=following),
            listed(CONFIG_MAPS, labelSelector="n=3"),
            listed(CONFIG_MAPS, labelSelector="n!=3,n"),
            listed(CONFIG_MAPS, labelSelector="n notin (1,3)"),
            listed(CONFIG_MAPS, fieldSelector="metadata.name=c2"),
            listed(CONFIG_MAPS, fieldSelector="data.a=1"),
            listed(CONFIG_MAPS, labelSelector="n=1", limit="1"),
        ],
        "watches": [
            *made,
            patch(CONFIG_MAPS, "c1", {"metadata": {"labels": {"n": "9"}}}),
            patch(CONFIG_MAPS, "c2", {"metadata": {"labels": {"m": "1"}}}),
            delete(CONFIG_MAPS, "c3"),
            patch(CONFIG_MAPS, "c0", {"metadata": {"labels": {"n": "1"}}}),
            since(0),
            since(3),
            since(0, labelSelector="n=1"),
            since(0, fieldSelector="metadata.name=c3"),
            Step("WATCH", CONFIG_MAPS.path(NAMESPACE), query={"resourceVersion": "0", "labelSelector": "n"}),
        ],
    }


def _permissions() -> dict[str, list[Step]]:
    user = f"system:serviceaccount:{NAMESPACE}:operator"
    verbs = ["get", "list", "create", "patch"]
    rules = [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]},
        {"apiGroups": ["cache.example.com"], "resources": ["memcacheds/status"], "verbs": ["patch"]},
    ]
    subject = {"kind": "ServiceAccount", "name": "operator", "namespace": NAMESPACE}
    binding = {"roleRef": {"apiGroup": kinds.ROLES.group, "kind": "Role", "name": "r"}, "subjects": [subject]}
    deployment = children(PLAIN)["Deployment"]
    finalizers = {"apiGroups": ["cache.example.com"], "resources": ["memcacheds/finalizers"], "verbs": ["update"]}
    return {
        "permissions": [
            create(kinds.ROLES, {"metadata": {"name": "r"}, "rules": rules}),
            create(kinds.ROLE_BINDINGS, {"metadata": {"name": "r"}, **binding}),
            listed(DEPLOYMENTS).by(user),
            listed(MEMCACHEDS).by(user),
            Step("GET", MEMCACHEDS.path(), user=user),
            get(SECRETS, "one").by(user),
            get(SECRETS, "two").by(user),
            patch(MEMCACHEDS, "x", {"status": {}}, subresource="status").by(user),
            patch(MEMCACHEDS, "x", {"spec": {}}).by(user),
            create(DEPLOYMENTS, deployment).by(user),
            put(kinds.ROLES, "r", {"metadata": {"name": "r"}, "rules": [*rules, finalizers]}),
            create(DEPLOYMENTS, deployment).by(user),
            delete(DEPLOYMENTS, "cache").by(user),
            delete(DEPLOYMENTS).by(user),
            patch(DEPLOYMENTS, "cache", {"metadata": {"ownerReferences": None}}).by(user),
            patch(DEPLOYMENTS, "cache", {"spec": {"replicas": 0}}).by(user),
            listed(DEPLOYMENTS).by("system:anonymous"),
        ]
    }


def _kinds() -> dict[str, list[Step]]:
    """Objects of further kinds, as far as campaigns or controllers write them."""
    labels = {"a": "b"}
    pods = {"containers": [{"name": "a", "image": "b", "env": [{"name": "e", "value": ""}]}]}
    template = {"metadata": {"labels": labels}, "spec": pods}
    rule = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}
    hook: Object = {
        "name": "a.example.com",
        "rules": [rule],
        "clientConfig": {"service": {"namespace": "default", "name": "webhook"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    bundle = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": CA}
    hooks = Resource(
        "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
    )
    found: dict[str, list[Step]] = {}
    specs: Mapping[Resource, Object] = {
        kinds.REPLICA_SETS: {"spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}},
        kinds.ENDPOINT_SLICES: {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": False}}],
            "ports": [{"name": "a", "port": 80, "protocol": "TCP"}],
        },
        kinds.RESOURCE_QUOTAS: {"spec": {"hard": {"pods": "2", "limits.memory": "1Gi"}}},
        kinds.LIMIT_RANGES: {
            "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"memory": "1Mi"}}]}
        },
        kinds.CLAIMS: {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "a",
            }
        },
        ACCOUNTS: {"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "a"}]},
        kinds.ROLE_BINDINGS: {
            "roleRef": {"apiGroup": kinds.ROLE_BINDINGS.group, "kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
        },
    }
    for resource, content in specs.items():
        annotated = {"metadata": {"annotations": {"a": "b"}, "finalizers": ["example.com/a"]}}
        found[f"kinds/{resource.plural}"] = [
            create(resource, {"metadata": {"name": "x", "labels": labels}, **content}),
            patch(resource, "x", annotated),
            delete(resource, "x", {"propagationPolicy": "Foreground"}),
            patch(resource, "x", {"metadata": {"finalizers": None}}),
            get(resource, "x"),
        ]
    revision = {"metadata": {"name": "x"}, "revision": 1, "data": {"spec": {"template": template}}}
    found["kinds/revisions"] = [create(kinds.CONTROLLER_REVISIONS, revision), delete(kinds.CONTROLLER_REVISIONS, "x")]
    name, manager = NAMESPACE, {"fieldManager": OPERATOR}
    configuration = {"metadata": {"name": name}, "webhooks": [hook, {**hook, "name": "b.example.com"}]}
    found["kinds/webhooks"] = [
        Step("POST", hooks.path(), configuration, query=manager),
        Step("PATCH", hooks.path(None, name), [{**bundle, "op": "add"}], PATCH, manager),
        Step("PATCH", hooks.path(None, name), [{**bundle, "op": "test", "value": "Yg=="}], PATCH, manager),
        Step("PATCH", hooks.path(None, name), [{**bundle, "value": None}], PATCH, manager),
        Step("DELETE", hooks.path(None, name)),
    ]
    return found


CA: Final = "YQ=="


SCRIPTS: Final[Mapping[str, list[Step]]] = {
    **_custom_resources(),
    **_pods(),
    **_leases(),
    **_events(),
    **_config_maps(),
    **_secrets_and_budgets(),
    **_places(),
    **_reads(),
    **_permissions(),
    **_kinds(),
}
