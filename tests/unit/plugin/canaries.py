"""Objects with a canary in each place that can have a secret, for the test of `report`."""

import json
import re
from typing import Any

from unit.plugin.samples import NAME, NAMESPACE, controller, workloads

Object = dict[str, Any]

_CANARY = re.compile(r"canary-([a-z0-9.-]+[a-z0-9])")


def canary(place: str) -> str:
    """A text that must not be in a report, or only if this place is documented as kept."""
    return f"canary-{place}"


def found(files: dict[str, str]) -> set[str]:
    """The places whose canaries are in a report."""
    return {place for content in files.values() for place in _CANARY.findall(content)}


def container(name: str, place: str) -> Object:
    """A container of another program: each field that can have a secret has one."""

    def at(field: str) -> str:
        return canary(f"{place}.{field}")

    def handler(field: str) -> dict[str, Object]:
        headers = [{"name": "Authorization", "value": at(f"{field}.header")}]
        return {
            "exec": {"command": ["sh", "-c", at(f"{field}.exec")]},
            "httpGet": {"path": at(f"{field}.path"), "httpHeaders": headers},
            "grpc": {"service": at(f"{field}.grpc")},
            "tcpSocket": {"host": at(f"{field}.tcp")},
        }

    return {
        "name": name,
        "image": "localhost/other:1",
        "env": [{"name": "TOKEN", "value": at("env")}],
        "envFrom": [{"prefix": at("prefix"), "secretRef": {"name": "token"}}],
        "command": ["run", at("command")],
        "args": ["--token", at("args")],
        "workingDir": at("directory"),
        **{f"{each}Probe": handler(each) for each in ("liveness", "readiness", "startup")},
        "lifecycle": {each: handler(each.lower()) for each in ("preStop", "postStart")},
        "later": {"token": at("later")},
    }


def status(name: str, place: str) -> Object:
    """The status of a container: its messages are those of the runtime, or the end of its log."""
    ended = {"exitCode": 1, "reason": "Error", "message": canary(f"{place}.ended")}
    waiting = {"reason": "CrashLoopBackOff", "message": canary(f"{place}.waiting")}
    return {"name": name, "state": {"waiting": waiting, "terminated": ended}, "lastState": {"terminated": ended}}


def annotations(place: str) -> dict[str, str]:
    """Annotations of other clients, and those of ours and of Kubernetes that have a copy of an object or a command."""
    copies = {
        "memcached-operator.example.com/held-template": f"0123 {json.dumps(container('x', f'{place}.held'))}",
        "kubectl.kubernetes.io/last-applied-configuration": canary(f"{place}.applied"),
        "kubernetes.io/change-cause": canary(f"{place}.cause"),
        "nginx.ingress.kubernetes.io/configuration-snippet": canary(f"{place}.snippet"),
    }
    return {"example.com/token": canary(f"{place}.annotation"), **copies}


def spoil(obj: Object, place: str) -> Object:
    """Add containers of other programs, volumes and annotations to a pod or a pod template. Returns it."""
    obj["metadata"].setdefault("annotations", {}).update(annotations(place))
    obj["metadata"]["labels"] = {**obj["metadata"]["labels"], "team": canary("label")}
    spec = obj["spec"]
    names = ("proxy", "vault-agent", *({"agent"} - {each["name"] for each in spec["containers"]}))
    spec["containers"] = [*spec["containers"], *(container(name, f"{place}.{name}") for name in names)]
    spec["initContainers"] = [container("init", f"{place}.init")]
    spec["ephemeralContainers"] = [container("debugger", f"{place}.debugger")]
    sources: dict[str, Object] = {
        "csi": {"volumeAttributes": {"token": canary(f"{place}.csi")}},
        "flexVolume": {"options": {"token": canary(f"{place}.flex")}},
        "gitRepo": {"repository": canary(f"{place}.git")},
    }
    spec["volumes"] = [*spec.get("volumes", []), *({"name": name, name: source} for name, source in sources.items())]
    own = spec["containers"][0]
    injected = container("memcached", f"{place}.memcached")
    own |= {name: injected[name] for name in ("env", "envFrom", "args", "startupProbe", "later", "workingDir")}
    own["lifecycle"] = {**own["lifecycle"], "postStart": injected["lifecycle"]["postStart"]}
    return obj


def spoil_pod(obj: Object) -> None:
    """A pod of the cache with containers that a webhook has added, and fields that it has changed in ours."""
    own = {**obj["spec"]["containers"][0], "command": ["env", canary("pod.wrapper"), "memcached"]}
    obj["spec"] = {**obj["spec"], "containers": [own, *obj["spec"]["containers"][1:]]}
    statuses = obj["status"]["containerStatuses"]
    known = {each["name"] for each in statuses}
    statuses += [status(name, f"pod.{name}") for name in ("proxy", "vault-agent", "agent") if name not in known]
    log = {"exitCode": 1, "reason": "Error", "message": f"<28 get {canary('pod.key')}\nExiting normally"}
    statuses[0] |= {"lastState": {"terminated": log}}
    obj["status"] |= {
        "initContainerStatuses": [status("init", "pod.init")],
        "ephemeralContainerStatuses": [status("debugger", "pod.debugger")],
    }
    obj["status"]["conditions"].append({"type": "example.com/gate", "message": canary("pod.condition")})
    spoil(obj, "pod")


def stranger() -> Object:
    """A pod of another client with the labels of the cache, and containers with our names."""
    names = ("memcached", "agent")
    return {
        "metadata": {"name": f"{NAME}-9", "namespace": NAMESPACE, "ownerReferences": controller("Job", "j")},
        "spec": {"containers": [container(name, f"stranger.{name}") for name in names]},
        "status": {"containerStatuses": [status(name, f"stranger.{name}") for name in names]},
    }


def children(cr: Object) -> dict[str, list[Object]]:
    """The children of a cache by resource, changed by other clients, and objects of others with the labels of ours."""
    found: dict[str, list[Object]] = json.loads(json.dumps(workloads(cr)))
    for kind, listed in found.items():
        for obj in listed:
            obj["metadata"]["annotations"] = annotations(kind)
            spoil(obj["spec"]["template"], f"{kind}.template")
            obj["status"] = {"conditions": [{"type": "ReplicaFailure", "message": canary("condition")}]}
    data = {"servers": "sessions-0:11211", "token": canary("data")}
    meta = {"ownerReferences": controller("Memcached", cr["metadata"]["uid"]), "annotations": annotations("child")}
    own = {"kind": "ConfigMap", "metadata": meta, "data": data, "binaryData": {"servers": canary("binary")}}
    other: Object = {"metadata": {"uid": "o", "ownerReferences": controller("Memcached", "other")}}
    template = {"spec": {"containers": [container("memcached", "other.template")]}}
    found["configmaps"] = [own, {"kind": "ConfigMap", **other, "data": {"servers": canary("other.data")}}]
    found["podmonitors.monitoring.coreos.com"] = [{"kind": "PodMonitor", **other, "spec": {"a": canary("other.spec")}}]
    found.setdefault("deployments", []).append({"kind": "Deployment", **other, "spec": {"template": template}})
    return found


def events(pod: str) -> list[Object]:
    """Events of a pod, of its containers, of other pods, and of another object with the name of the cache."""

    def event(kind: str, name: str, field: str, place: str) -> Object:
        return {"involvedObject": {"kind": kind, "name": name, "fieldPath": field}, "message": canary(place)}

    return [
        event("Pod", pod, "", "event"),
        event("Pod", pod, "spec.containers{memcached}", "event.memcached"),
        *(event("Pod", pod, f"spec.containers{{{name}}}", f"event.{name}") for name in ("proxy", "vault-agent")),
        event("Pod", pod, "spec.initContainers{memcached}", "event.init"),
        event("Pod", f"{NAME}-7", "spec.containers{proxy}", "event.gone"),
        event("Pod", f"{NAME}-9", "spec.containers{memcached}", "event.stranger"),
        event("Secret", NAME, "", "event.secret"),
    ]
