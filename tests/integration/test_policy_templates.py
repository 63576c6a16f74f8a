"""The admission policies: the pod templates that a stolen token of the controller's account can write."""

import ast
from typing import Any

import pytest

from integration import confined
from integration.confined import ACCOUNT_NAMESPACE, Account, container, deployment, dry_run, merged, nested, owner, pod
from integration.control_plane import ControlPlane
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, Resource
from memcached_operator.memcached.desired.warm_restart import STOP
from support import policies
from support.kubernetes import CLAIMS, FILE_KEYS, USER_NAMESPACES

pytestmark = pytest.mark.server

TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
FIRST = {"name": "first", "image": "example.com/app:1"}
OWN = "securityContext"
SYSCTL = {"name": "kernel.shm_rmid_forced", "value": "0"}
METADATA_SERVICE = {"httpGet": {"host": "169.254.169.254", "port": 80}}
CLAIM = [{"name": "gpu", "resourceClaimName": "theirs"}]
LABELS_OF_POD = {"downwardAPI": {"items": [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.labels"}}]}}
ARGS = "metadata.annotations['memcached-operator.example.com/args']"
WARM_STOP = ["sh", "-c", STOP]
FILE_KEY = {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "all", "path": "a", "key": "b"}}}


def args_file(path: str, field: str) -> Object:
    """A volume with a file that contains a field of the pod."""
    return {"name": "all", "downwardAPI": {"items": [{"path": path, "fieldRef": {"fieldPath": field}}]}}


def projected(secret: Object) -> Object:
    """A projected volume of a Secret."""
    return {"name": "all", "projected": {"sources": [{"secret": secret}]}}


def claim(**spec: Any) -> Object:
    """An ephemeral volume with a claim that has these fields beside the required ones."""
    required = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"name": "all", "ephemeral": {"volumeClaimTemplate": {"spec": {**required, **spec}}}}


CHANGES: dict[str, tuple[Object, str]] = {
    "host network": (pod("hostNetwork", True), "hostNetwork"),
    "host PIDs": (pod("hostPID", True), "hostPID"),
    "host IPC": (pod("hostIPC", True), "hostIPC"),
    "host users": (pod("hostUsers", True), "hostUsers"),
    "host aliases": (pod("hostAliases", [{"ip": "192.0.2.1", "hostnames": ["a"]}]), "hostAliases"),
    "node": (pod("nodeName", "control-plane"), "nodeName"),
    "highest priority": (pod("priorityClassName", "system-node-critical"), "priorityClassName"),
    "priority of the cluster": (pod("priorityClassName", "system-cluster-critical"), "priorityClassName"),
    "preemption": (pod("preemptionPolicy", "Never"), "preemptionPolicy"),
    "scheduler": (pod("schedulerName", "other"), "schedulerName"),
    "DNS policy": (pod("dnsPolicy", "Default"), "dnsPolicy"),
    "DNS servers": (pod("dnsConfig", {"nameservers": ["192.0.2.1"]}), "dnsConfig.nameservers"),
    "DNS search list": (pod("dnsConfig", {"searches": ["example.com"]}), "dnsConfig.searches"),
    "DNS option": (pod("dnsConfig", {"options": [{"name": "use-vc"}]}), "dnsConfig.options.name"),
    "value of a DNS option": (
        pod("dnsConfig", {"options": [{"name": "ndots", "value": "9"}]}),
        "dnsConfig.options.value",
    ),
    "long termination": (pod("terminationGracePeriodSeconds", 2**31 - 1), "terminationGracePeriodSeconds"),
    "termination of more than a day": (pod("terminationGracePeriodSeconds", 86401), "terminationGracePeriodSeconds"),
    "short termination": (pod("terminationGracePeriodSeconds", 9), "terminationGracePeriodSeconds"),
    "Service links": (pod("enableServiceLinks", True), "enableServiceLinks"),
    "claimed device": (pod("resourceClaims", CLAIM), "resourceClaims"),
    "device of a container": (
        pod("", {"resourceClaims": CLAIM, "containers": [{"resources": {"claims": [{"name": "gpu"}]}}]}),
        "resources.claims",
    ),
    "host path": (pod("volumes", [{"name": "all", "hostPath": {"path": "/"}}]), "volumes"),
    "Secret as a volume": (pod("volumes", [{"name": "all", "secret": {"secretName": "any"}}]), "volumes"),
    "Secret with another key": (
        pod("volumes", [{"name": "all", "secret": {"secretName": "any", "items": [{"key": "a", "path": "a"}]}}]),
        "volumes.secret.items",
    ),
    "projected Secret": (pod("volumes", [projected({"name": "any"})]), "volumes"),
    "projected Secret with another key": (
        pod("volumes", [projected({"name": "any", "items": [{"key": "a", "path": "tls.crt"}]})]),
        "volumes",
    ),
    "projected Secret as another file": (
        pod("volumes", [projected({"name": "any", "items": [{"key": "tls.crt", "path": "a"}]})]),
        "volumes",
    ),
    "projected Secret with a mode": (
        pod("volumes", [projected({"name": "any", "items": [{"key": "tls.crt", "path": "tls.crt", "mode": 511}]})]),
        "volumes",
    ),
    "projected ConfigMap": (
        pod("volumes", [{"name": "all", "projected": {"sources": [{"configMap": {"name": "any"}}]}}]),
        "volumes",
    ),
    "claim": (pod("volumes", [{"name": "all", "persistentVolumeClaim": {"claimName": "any"}}]), "volumes"),
    "projected token": (pod("volumes", [{"name": "all", **TOKEN}]), "volumes"),
    "empty volume": (pod("volumes", [{"name": "all", "emptyDir": {}}]), "volumes"),
    "unlimited memory": (pod("volumes", [{"name": "all", "emptyDir": {"medium": "Memory"}}]), "volumes"),
    "large pages": (
        pod("volumes", [{"name": "all", "emptyDir": {"medium": "HugePages", "sizeLimit": "1Mi"}}]),
        "volumes.emptyDir.medium",
    ),
    **{
        f"claim with {name}": (
            pod("volumes", [claim(**{name: value})]),
            f"volumes.ephemeral.volumeClaimTemplate.spec.{name}",
        )
        for name, value in (
            ("dataSource", {"kind": "PersistentVolumeClaim", "name": "any"}),
            ("dataSourceRef", {"kind": "PersistentVolumeClaim", "name": "any"}),
            ("selector", {"matchLabels": {"app": "any"}}),
            ("volumeName", "any"),
            ("volumeMode", "Block"),
        )
    },
    "init container": (pod("initContainers", [FIRST]), "initContainers"),
    "token": (pod("automountServiceAccountToken", True), "automountServiceAccountToken"),
    "token by default": (pod("automountServiceAccountToken", None), "automountServiceAccountToken"),
    "pod: no security context": (pod(OWN, None), "seccompProfile"),
    "pod: no seccomp": (pod(f"{OWN}.seccompProfile.type", "Unconfined"), "seccompProfile"),
    "pod: root": (pod(f"{OWN}.runAsUser", 0), "runAsUser"),
    "pod: may be root": (pod(f"{OWN}.runAsNonRoot", False), "runAsNonRoot"),
    "pod: policy of groups": (pod(f"{OWN}.supplementalGroupsPolicy", "Strict"), "supplementalGroupsPolicy"),
    "pod: no AppArmor": (pod(f"{OWN}.appArmorProfile", {"type": "Unconfined"}), "appArmorProfile"),
    "pod: SELinux": (pod(f"{OWN}.seLinuxOptions", {"type": "spc_t"}), "seLinuxOptions"),
    "pod: sysctls": (pod(f"{OWN}.sysctls", [SYSCTL]), "sysctls"),
    "pod: Windows": (pod(f"{OWN}.windowsOptions", {"runAsUserName": "SYSTEM"}), "windowsOptions"),
    "privileged": (container(OWN, {"privileged": True}), "privileged"),
    "capabilities": (container(OWN, {"capabilities": {"add": ["SYS_ADMIN"]}}), "capabilities.add"),
    "unmasked /proc": (
        pod("", {"hostUsers": False, "containers": [{OWN: {"procMount": "Unmasked"}}]}),
        "securityContext.procMount",
    ),
    "container: user": (container(OWN, {"runAsUser": 0}), "runAsUser"),
    "container: no seccomp": (container(OWN, {"seccompProfile": {"type": "Unconfined"}}), "seccompProfile"),
    "container: no AppArmor": (container(OWN, {"appArmorProfile": {"type": "Unconfined"}}), "appArmorProfile"),
    "container: SELinux": (container(OWN, {"seLinuxOptions": {"type": "spc_t"}}), "seLinuxOptions"),
    "container: Windows": (container(OWN, {"windowsOptions": {"runAsUserName": "SYSTEM"}}), "windowsOptions"),
    "host port": (container("ports", [{"containerPort": 80, "hostPort": 80}]), "hostPort"),
    "host address": (container("ports", [{"containerPort": 80, "hostIP": "127.0.0.1"}]), "hostIP"),
    "arguments": (container("args", ["a"]), "args"),
    "environment from a Secret": (container("envFrom", [{"secretRef": {"name": "any"}}]), "envFrom"),
    "environment from a file": (
        pod("", {"volumes": [{"name": "all", "emptyDir": {}}], "containers": [{"env": [FILE_KEY]}]}),
        "env.valueFrom.fileKeyRef",
    ),
    "terminal": (container("tty", True), "tty"),
    "working directory": (container("workingDir", "/a"), "workingDir"),
    "termination file": (container("terminationMessagePath", "/a"), "terminationMessagePath"),
    "termination log": (container("terminationMessagePolicy", "FallbackToLogsOnError"), "terminationMessagePolicy"),
    "request after the start": (container("lifecycle.postStart", METADATA_SERVICE), "lifecycle.postStart"),
    "request before the stop": (container("lifecycle.preStop", METADATA_SERVICE), "preStop.httpGet"),
    **{
        f"command before the stop: {name}": (
            container("lifecycle.preStop", {"exec": {"command": command}}),
            "preStop.exec.command",
        )
        for name, command in {
            "another program": ["a"],
            "another script": ["sh", "-c", "a"],
            "a longer script": [*WARM_STOP[:2], f"{WARM_STOP[2]}; a"],
            "another argument": [*WARM_STOP, "a"],
        }.items()
    },
    "request as a liveness probe": (container("livenessProbe", METADATA_SERVICE), "livenessProbe.httpGet"),
    "request to another path": (
        container("livenessProbe", {"httpGet": {"path": "/quit", "port": "probes"}}),
        "livenessProbe.httpGet.path",
    ),
    "request to the port of the metrics": (
        container("livenessProbe", {"httpGet": {"path": "/livez", "port": "metrics"}}),
        "livenessProbe.httpGet.port",
    ),
    "request to another port": (
        container("readinessProbe", {"httpGet": {"path": "/readyz", "port": 10250}}),
        "readinessProbe.httpGet.port",
    ),
    "other fields of the pod": (pod("volumes", [{"name": "all", **LABELS_OF_POD}]), "fieldRef.fieldPath"),
    "another annotation": (
        pod("volumes", [args_file("args", "metadata.annotations['example.com/args']")]),
        "fieldRef.fieldPath",
    ),
    "annotation as another file": (pod("volumes", [args_file("other", ARGS)]), "items.path"),
    "request as a readiness probe": (container("readinessProbe", METADATA_SERVICE), "readinessProbe.httpGet"),
    "startup probe": (container("startupProbe", METADATA_SERVICE), "startupProbe"),
    "liveness of another host": (
        container("livenessProbe", {"tcpSocket": {"host": "192.0.2.1", "port": 80}}),
        "livenessProbe.tcpSocket.host",
    ),
    "readiness of another host": (
        container("readinessProbe", {"tcpSocket": {"host": "192.0.2.1", "port": 80}}),
        "readinessProbe.tcpSocket.host",
    ),
    "finalizers of pods": (nested("spec.template.metadata.finalizers", ["example.com/held"]), "metadata.finalizers"),
}
"""Changes of a Deployment, and the field that the denial names."""
SINCE = {
    "host users": USER_NAMESPACES,
    "pod: policy of groups": USER_NAMESPACES,
    "unmasked /proc": USER_NAMESPACES,
    "claimed device": CLAIMS,
    "device of a container": CLAIMS,
    "environment from a file": FILE_KEYS,
}
"""Fields that earlier versions remove, or reject, before they evaluate policies."""


@pytest.mark.parametrize("name", CHANGES)
def test_field_that_is_never_built_is_denied(
    version: str, stolen_token: Account, children: dict[Resource, Object], name: str
) -> None:
    if name in SINCE and not SINCE[name].applies(version):
        pytest.skip("this version does not have the field")
    change, field = CHANGES[name]
    denials = confined.denials(stolen_token, DEPLOYMENTS, children[DEPLOYMENTS], change)
    assert [operation for operation, denial in denials.items() if field not in denial] == [], denials


def test_fields_added_by_others_do_not_block_the_controller(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    key = Key(DEPLOYMENTS, ACCOUNT_NAMESPACE, "changed")
    ours = deployment("changed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(DEPLOYMENTS, merged(ours, pod("hostNetwork", True)))
    try:
        assert not stolen_token.denial(dry_run("PUT", DEPLOYMENTS, merged(live, {"spec": {"replicas": 3}})))
        changed = merged(live, container("image", "other:1"))
        assert "hostNetwork" in stolen_token.denial(dry_run("PUT", DEPLOYMENTS, changed))
        del changed["spec"]["template"]["spec"]["hostNetwork"]  # the remedy of docs/troubleshoot.md
        assert not stolen_token.denial(dry_run("PUT", DEPLOYMENTS, changed))
    finally:
        plane.delete(key)


LEAVES = {
    "spec.template.spec.affinity.nodeAffinity",
    "spec.template.spec.affinity.podAffinity",
    "spec.template.spec.affinity.podAntiAffinity",
    "spec.template.spec.containers.env.valueFrom.configMapKeyRef",
    "spec.template.spec.containers.env.valueFrom.fieldRef",
    "spec.template.spec.containers.env.valueFrom.resourceFieldRef",
    "spec.template.spec.containers.env.valueFrom.secretKeyRef",
    "spec.template.spec.topologySpreadConstraints.labelSelector",
    "spec.template.spec.volumes.ephemeral.volumeClaimTemplate.spec.resources",
    "spec.template.spec.volumes.projected.sources.secret.items",
}
"""Objects of the user's spec that are allowed with any fields: references, and terms that select nodes and pods. A
further rule limits the items of projected Secrets."""


def allowed() -> dict[str, dict[str, list[str]]]:
    """The fields that the policy allows, by the path of their object."""
    children = next(each for each in policies.policies() if each["metadata"]["name"] == "children")
    variables = {each["name"]: each["expression"] for each in children["spec"]["variables"]}
    return ast.literal_eval(variables["allowed"])


def properties(schemas: Object, schema: Object) -> Object:
    """The fields of an object or of a list's objects; empty for other types."""
    inner = schema.get("items", schema)
    for part in (inner, *inner.get("allOf", ())):
        if "$ref" in part:
            return schemas[part["$ref"].rpartition("/")[2]].get("properties", {})
    return {}


def test_allowed_fields_of_every_object_in_a_template_are_listed(plane: ControlPlane) -> None:
    schemas = plane.call(lambda client: client.request("GET", "/openapi/v3/apis/apps/v1"))["components"]["schemas"]
    levels, reached = allowed(), set[str]()

    def walk(path: str, fields: Object) -> None:
        reached.add(path)
        assert levels[path].keys() <= fields.keys(), path
        for name in levels[path]:
            inner = properties(schemas, fields[name])
            if inner and f"{path}.{name}" not in LEAVES:
                walk(f"{path}.{name}", inner)

    walk("spec.template", schemas["io.k8s.api.core.v1.PodTemplateSpec"]["properties"])
    assert reached == levels.keys()
