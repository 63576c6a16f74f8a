"""The admission policies: which pod templates a stolen token of the controller's account can write."""

from typing import Any

import pytest

import goldens
from integration import confined
from integration.confined import HOME, LEAST, Account, asked, container, deployment, merged, owner, pod
from integration.control_plane import ControlPlane
from memcached_operator.engine.apply import complete
from memcached_operator.engine.resource import DEPLOYMENTS, Key, Object, Resource

TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
FIRST = {"name": "first", "image": "example.com/app:1"}
OWN = "securityContext"
SYSCTL = {"name": "kernel.shm_rmid_forced", "value": "0"}
CHANGES: dict[str, tuple[Object, str]] = {
    "host network": (pod("hostNetwork", True), "hostNetwork"),
    "host PIDs": (pod("hostPID", True), "hostPID"),
    "host IPC": (pod("hostIPC", True), "hostIPC"),
    "host port": (container("ports", [{"containerPort": 80, "hostPort": 80}]), "hostPort"),
    "host path": (pod("volumes", [{"name": "all", "hostPath": {"path": "/"}}]), "volumes"),
    "Secret as a volume": (pod("volumes", [{"name": "all", "secret": {"secretName": "any"}}]), "volumes"),
    "claim": (pod("volumes", [{"name": "all", "persistentVolumeClaim": {"claimName": "any"}}]), "volumes"),
    "projected token": (pod("volumes", [{"name": "all", **TOKEN}]), "volumes"),
    "empty volume": (pod("volumes", [{"name": "all", "emptyDir": {}}]), "volumes"),
    "init container": (pod("initContainers", [FIRST]), "init containers"),
    "token": (pod("automountServiceAccountToken", True), "automountServiceAccountToken"),
    "token by default": (pod("automountServiceAccountToken", None), "automountServiceAccountToken"),
    "account": (pod("serviceAccountName", "admin"), "names no ServiceAccount"),
    "account by its old field": (pod("serviceAccount", "admin"), "names no ServiceAccount"),
    "privileged": (container(OWN, {"privileged": True}), "privileged"),
    "capabilities": (container(OWN, {"capabilities": {"add": ["SYS_ADMIN"]}}), "capabilities"),
    "no profile": (pod(OWN, None), "seccompProfile"),
    "pod: no seccomp": (pod(f"{OWN}.seccompProfile.type", "Unconfined"), "seccompProfile"),
    "pod: no AppArmor": (pod(f"{OWN}.appArmorProfile", {"type": "Unconfined"}), "appArmorProfile"),
    "pod: SELinux": (pod(f"{OWN}.seLinuxOptions", {"type": "spc_t"}), "seLinuxOptions"),
    "pod: sysctls": (pod(f"{OWN}.sysctls", [SYSCTL]), "sysctls"),
    "pod: Windows": (pod(f"{OWN}.windowsOptions", {"runAsUserName": "SYSTEM"}), "windowsOptions"),
    "container: no seccomp": (container(OWN, {"seccompProfile": {"type": "Unconfined"}}), "seccompProfile"),
    "container: no AppArmor": (container(OWN, {"appArmorProfile": {"type": "Unconfined"}}), "appArmorProfile"),
    "container: SELinux": (container(OWN, {"seLinuxOptions": {"type": "spc_t"}}), "seLinuxOptions"),
    "container: Windows": (container(OWN, {"windowsOptions": {"runAsUserName": "SYSTEM"}}), "windowsOptions"),
}
"""Changes of a Deployment, and what is said against each."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_field_that_is_never_built_is_denied(
    stolen_token: Account, children: dict[Resource, Object], name: str
) -> None:
    change, field = CHANGES[name]
    said = confined.denials(stolen_token, DEPLOYMENTS, children[DEPLOYMENTS], change)
    assert [way for way, message in said.items() if field not in message] == [], said


def test_what_others_put_into_a_child_does_not_stop_the_controller(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    key = Key(DEPLOYMENTS, HOME, "changed")
    ours = deployment("changed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(DEPLOYMENTS, merged(ours, pod("hostNetwork", True)))
    try:
        assert not stolen_token.denial(asked("PUT", DEPLOYMENTS, merged(live, {"spec": {"replicas": 3}})))
        changed = merged(live, container("image", "other:1"))
        assert "hostNetwork" in stolen_token.denial(asked("PUT", DEPLOYMENTS, changed))
    finally:
        plane.delete(key)


SHAPES = {f"{kind}/{shape}": path for kind in goldens.KINDS for shape, path in goldens.paths(kind).items()}


@pytest.mark.parametrize("path", SHAPES.values(), ids=SHAPES.keys())
def test_whatever_is_built_can_be_created(stolen_token: Account, path: Any) -> None:
    cr, *built = goldens.objects(path)
    cr["metadata"] |= {"namespace": HOME, "uid": "of-no-object"}
    resources = {resource.kind: resource for resource in LEAST}
    for child in built:
        made = complete(cr, child)
        # A node port may be another's.
        for port in made["spec"].get("ports", ()):
            port.pop("nodePort", None)
        assert not stolen_token.denial(asked("POST", resources[child["kind"]], made))
