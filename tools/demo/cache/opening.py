"""The first steps: the operator is running, and the namespace is clean."""

from typing import Any

from demo import waiting
from demo.errors import DemoError
from demo.kubectl import Kubectl, Object
from demo.stage import Stage
from demo.waiting import Progress

CRD = "memcacheds.cache.example.com"
OPERATOR = "app.kubernetes.io/name=memcached-operator"
COMPONENTS = {"controller-manager", "webhook"}
SIMULATED_NODE = "kwok.x-k8s.io/node"
READY_SECONDS = 60.0


def operator_works(stage: Stage) -> None:
    """The cluster responds and runs containers; the CRD exists; controller and webhook are available."""
    check_cluster(stage.kubectl)

    def check() -> Progress:
        return available(stage.kubectl.items(["get", "deployments", "-A", "-l", OPERATOR]))

    waiting.wait(stage.screen, check, "the operator's Deployments", READY_SECONDS)
    stage.show(["get", "deployments", "-A", "-l", OPERATOR])


def check_cluster(kubectl: Kubectl) -> None:
    """Raises DemoError, with the remedy, if the demo cannot run on this cluster."""
    nodes = kubectl.run(["get", "nodes", "-o", "name"], seconds=20)
    if nodes.code and "forbidden" not in nodes.err.lower():
        raise DemoError(f"no cluster responds ({nodes.complaint}); start one with `make cluster`, or set KUBECONFIG")
    if not nodes.code and only_simulated(kubectl.items(["get", "nodes"])):
        raise DemoError(
            "all nodes of this cluster are simulated and run no containers; "
            "run `make demo` as root on Linux, or set KUBECONFIG to another cluster"
        )
    if kubectl.run(["get", "crd", CRD]).code:
        raise DemoError(f"the CustomResourceDefinition {CRD} is not installed; run `make deploy` first")


def only_simulated(nodes: list[Object]) -> bool:
    """Whether kwok simulates every node."""
    return all(SIMULATED_NODE in node["metadata"].get("annotations", {}) for node in nodes)


def available(deployments: list[Object]) -> Progress:
    """The progress of the operator's own Deployments. Raises DemoError if one does not exist."""
    found = {deployment["metadata"]["labels"].get("app.kubernetes.io/component") for deployment in deployments}
    missing = sorted(COMPONENTS - found)
    if missing:
        raise DemoError(f"the operator's Deployment {' and '.join(missing)} is missing; run `make deploy` first")
    counts = {deployment["metadata"]["name"]: _counts(deployment) for deployment in deployments}
    text = ", ".join(f"{name} {ready}/{size}" for name, (ready, size) in sorted(counts.items()))
    return Progress(all(ready >= 1 for ready, _ in counts.values()), text)


def _counts(deployment: dict[str, Any]) -> tuple[int, int]:
    return deployment.get("status", {}).get("availableReplicas", 0), deployment["spec"]["replicas"]


def clean_namespace(stage: Stage) -> None:
    """Delete the Memcached objects of an earlier run, or create the namespace."""
    kubectl = stage.kubectl
    if (phase := _phase(kubectl)) == "Terminating":
        stage.screen.say("The namespace is still being deleted.")
        waiting.wait(stage.screen, lambda: _deleted(kubectl), f"the deletion of the namespace {kubectl.namespace}")
        phase = ""
    if phase:
        # In the foreground, kubectl returns when the pods are deleted too.
        stage.show(kubectl.here("delete", "memcacheds", "--all", "--cascade=foreground"))
    else:
        stage.show(["create", "namespace", kubectl.namespace])


def _phase(kubectl: Kubectl) -> str:
    return kubectl.must(
        ["get", "namespace", kubectl.namespace, "--ignore-not-found", "-o", "jsonpath={.status.phase}"]
    ).out


def _deleted(kubectl: Kubectl) -> Progress:
    phase = _phase(kubectl)
    return Progress(not phase, f"namespace {kubectl.namespace}: {phase}")
