"""Installing the operator with kustomize, waiting until it responds, and removing it."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence

from cluster.errors import ClusterError
from cluster.public.lifecycle import choose_mode, current, foreign_kubeconfig
from project.environment import ROOT, find_cluster, kubectl, show_kubectl, use_cluster
from project.images import Images, image_id

NAMESPACE = "memcached-operator-system"
PREFIX = "memcached-operator"
DEPLOYMENTS = {f"{PREFIX}-controller-manager": "manager", f"{PREFIX}-webhook": "webhook"}
"""The Deployments, and the container of each."""
CRDS = "config/crd"
LISTS = (
    "/apis/cache.example.com/v1/memcacheds",
    "/apis/cache.example.com/v1alpha1/memcachedproxies",
    "/apis/app.example.com/v1/appservices",
)
SAMPLE = "config/samples/cache_v1_memcached.yaml"
BUILD = "build/deploy"
IMAGE_ID = "memcached-operator.example.com/image-id"
"""An annotation of the pod templates: a local image keeps its name, so a new id replaces the pods."""
AGENT_VARIABLE = "RELATED_IMAGE_AGENT"
APPLY = ("apply", "--server-side", "--force-conflicts")
ROLLOUT = "180s"
DELETION = "120s"
ADMISSION_SECONDS = 30.0
"""How long the API server may take to reach the webhooks after the rollout."""
SERVED_SECONDS = 60.0
"""How long the API server may take to serve a new CRD."""
RETRY_SECONDS = 0.5


def kustomization(overlay: str, images: Images, identity: str) -> str:
    """A kustomization in build/deploy: the overlay with other images, and the operator's image id as an annotation."""
    patches = [_patch(name, container, images, identity) for name, container in DEPLOYMENTS.items()]
    return json.dumps({"resources": [f"../../{overlay}"], "patches": patches}, indent=2) + "\n"


def _patch(name: str, container: str, images: Images, identity: str) -> dict[str, object]:
    """A strategic merge patch of a Deployment."""
    agent = {"name": AGENT_VARIABLE, "value": images.agent}
    template = {
        "metadata": {"annotations": {IMAGE_ID: identity}},
        "spec": {"containers": [{"name": container, "image": images.operator, "env": [agent]}]},
    }
    patch = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"template": template}}
    return {"target": {"kind": "Deployment", "name": name}, "patch": json.dumps(patch)}


def has_pods() -> bool:
    """Whether containers run in the cluster that the commands use: the nodes of a control plane are simulated."""
    return bool(foreign_kubeconfig(current())) or choose_mode() == "node"


def deploy(images: Images, overlay: str) -> None:
    """Apply the overlay with the images; return when admission responds. Raises ClusterError with the cause."""
    if not has_pods():
        raise ClusterError(
            "the nodes of this cluster are simulated and run no containers: deploy as root on Linux without "
            "CLUSTER=control-plane, or set KUBECONFIG to another cluster. `make run` runs the controller in this shell"
        )
    use_cluster()
    folder = ROOT / BUILD
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kustomization.yaml").write_text(kustomization(overlay, images, image_id(images.operator)))
    applied = kubectl(*APPLY, "-f", "-", stdin=kubectl("kustomize", BUILD))
    print(f"Applied {len(applied.splitlines())} objects of {overlay} with {images.operator}.", flush=True)
    for name in DEPLOYMENTS:
        _wait_for_rollout(name)
    _wait_for_admission()
    print("Deployed: the admission webhooks respond.")


def _wait_for_rollout(name: str) -> None:
    try:
        show_kubectl("-n", NAMESPACE, "rollout", "status", f"--timeout={ROLLOUT}", f"deployment/{name}")
    except ClusterError as error:
        _diagnose(name)
        remedy = "If the image cannot be pulled, run `make docker-build docker-push`"
        raise ClusterError(f"{name} is not available: see its pods, events and log above. {remedy}") from error


def _diagnose(name: str) -> None:
    """Show what may explain a rollout that does not finish; errors of the diagnosis itself do not matter."""
    for words in (
        ("get", "pods"),
        ("get", "events", "--field-selector=type=Warning", "--sort-by=.lastTimestamp"),
        ("logs", "--tail=5", f"deployment/{name}"),
    ):
        done = subprocess.run(["kubectl", "-n", NAMESPACE, *words], capture_output=True, text=True, check=False)
        lines = (done.stdout or done.stderr).splitlines()
        print("\n".join(lines if "pods" in words else lines[-5:]), flush=True)


def _wait_for_admission() -> None:
    """A server-side dry run, as a user would send it, that stores nothing."""
    words = (*APPLY, "--field-manager=deploy-check", "--dry-run=server", "-n", "default", "-f", SAMPLE)
    _retry(words, ADMISSION_SECONDS, "the operator runs, but admission does not respond")


def _retry(words: Sequence[str], seconds: float, problem: str) -> None:
    """Repeat a kubectl command until it succeeds. Raises ClusterError with the problem and the command's error."""
    deadline = time.monotonic() + seconds
    command = ["kubectl", *words]
    while (done := subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)).returncode:
        if time.monotonic() > deadline:
            raise ClusterError(f"{problem}: {done.stderr.strip()}")
        time.sleep(RETRY_SECONDS)


def undeploy(overlay: str) -> None:
    """Delete everything in the overlay, if there is a cluster. Raises ClusterError after two minutes."""
    if not _cluster_exists():
        return
    try:
        _delete("-f", "-", stdin=kubectl("kustomize", overlay))
    except ClusterError as error:
        raise ClusterError("some objects were not deleted within 2 minutes: see above. Run this again") from error


def install() -> None:
    """Apply the CRDs and wait until the API server serves them. Raises ClusterError.

    Until the first list, a deletion of the CRD can fail with "storage is (re)initializing", and kube-apiserver may try
    again only after 5 minutes.
    """
    use_cluster()
    show_kubectl(*APPLY, "-k", CRDS)
    for path in LISTS:
        # `kubectl wait` fails for a CRD that has no conditions yet.
        _retry(("get", "--raw", f"{path}?limit=1"), SERVED_SECONDS, f"the API server does not serve {path}")


def uninstall() -> None:
    """Delete the CRDs, if there is a cluster. Raises ClusterError."""
    if _cluster_exists():
        _delete("-k", CRDS)


def _delete(*words: str, stdin: str | None = None) -> None:
    show_kubectl("delete", "--ignore-not-found", f"--timeout={DELETION}", *words, stdin=stdin)


def _cluster_exists() -> bool:
    found = find_cluster()
    if not found:
        print("No cluster is running: there is nothing to remove.", file=sys.stderr)
    return found
