"""The first steps: is there an operator to tell of, and a clean namespace to tell it in?"""

from typing import Any

from demo import waiting
from demo.errors import StoryError
from demo.kubectl import Kubectl, Object
from demo.stage import Stage
from demo.waiting import Look

CRD = "memcacheds.cache.example.com"
OPERATOR = "app.kubernetes.io/name=memcached-operator"
COMPONENTS = {"controller-manager", "webhook"}
FAKE_NODE = "kwok.x-k8s.io/node"
READY_SECONDS = 60.0


def operator_works(stage: Stage) -> None:
    """The cluster answers and runs containers; the CRD is there; controller and webhook are available."""
    check_cluster(stage.kubectl)

    def look() -> Look:
        return available(stage.kubectl.items(["get", "deployments", "-A", "-l", OPERATOR]))

    waiting.wait(stage.screen, look, "the operator's availability", READY_SECONDS)
    stage.told(["get", "deployments", "-A", "-l", OPERATOR])


def check_cluster(kubectl: Kubectl) -> None:
    """Raises StoryError where the story cannot even begin, with the way out."""
    nodes = kubectl.run(["get", "nodes", "-o", "name"], seconds=20)
    if nodes.code and "forbidden" not in nodes.err.lower():
        raise StoryError(f"no cluster answers ({nodes.complaint}); start one with `make cluster`, or set KUBECONFIG")
    if not nodes.code and only_fake(kubectl.items(["get", "nodes"])):
        raise StoryError(
            "the nodes of this cluster only pretend to run containers; "
            "run `make demo` as root on Linux, or with KUBECONFIG set to a cluster of yours"
        )
    if kubectl.run(["get", "crd", CRD]).code:
        raise StoryError(f"the CustomResourceDefinition {CRD} is not installed; run `make deploy` first")


def only_fake(nodes: list[Object]) -> bool:
    """Tell whether every node is one that kwok pretends to be."""
    return all(FAKE_NODE in node["metadata"].get("annotations", {}) for node in nodes)


def available(deployments: list[Object]) -> Look:
    """How far the operator's own Deployments are. Raises StoryError where one is not even there."""
    found = {deployment["metadata"]["labels"].get("app.kubernetes.io/component") for deployment in deployments}
    missing = sorted(COMPONENTS - found)
    if missing:
        raise StoryError(f"the operator's Deployment {' and '.join(missing)} is missing; run `make deploy` first")
    counts = {deployment["metadata"]["name"]: _counts(deployment) for deployment in deployments}
    text = ", ".join(f"{name} {ready}/{size}" for name, (ready, size) in sorted(counts.items()))
    return Look(all(ready >= 1 for ready, _ in counts.values()), text)


def _counts(deployment: dict[str, Any]) -> tuple[int, int]:
    return deployment.get("status", {}).get("availableReplicas", 0), deployment["spec"]["replicas"]


def clean_namespace(stage: Stage) -> None:
    """What an earlier run left is removed; then the namespace is there."""
    kubectl = stage.kubectl
    if (phase := _phase(kubectl)) == "Terminating":
        stage.screen.say("The namespace is still being deleted; this takes a moment.")
        waiting.wait(stage.screen, lambda: _gone(kubectl), f"the end of the namespace {kubectl.namespace}")
        phase = ""
    if phase:
        # In the foreground, kubectl returns when the pods are gone too.
        stage.told(kubectl.here("delete", "memcacheds", "--all", "--cascade=foreground"))
    else:
        stage.told(["create", "namespace", kubectl.namespace])


def _phase(kubectl: Kubectl) -> str:
    return kubectl.must(
        ["get", "namespace", kubectl.namespace, "--ignore-not-found", "-o", "jsonpath={.status.phase}"]
    ).out


def _gone(kubectl: Kubectl) -> Look:
    phase = _phase(kubectl)
    return Look(not phase, f"namespace {kubectl.namespace}: {phase}")
