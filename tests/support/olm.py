"""Installs the operator with the real OLM: catalogs of its releases, and Subscriptions."""

import os
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundle.release import project_version
from cluster.public.components import end
from olm import running
from support import kube, programs
from support.kube import Object, eventually, kubectl
from support.memcached import IMAGE
from support.permissions import Grant
from support.waiting import BUILD, READY, ROLLOUT

ROOT = Path(__file__).parents[2]
VERSION = project_version()
"""The release of this tree."""
PACKAGE = "memcached-operator"
CATALOG = "memcached-operator-tests"
CATALOG_NAMESPACE = "olm"
CHANNEL = "stable"
API = "/apis/operators.coreos.com"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
CONTROLLER = "memcached-operator-controller-manager"
WEBHOOK = "memcached-operator-webhook"
SECONDS = ROLLOUT
"""Seconds for a step of OLM."""
DATE = "2030-01-02"
"""The date of every release."""
IMAGES = ("IMG", "AGENT_IMG")
"""The variables with the images of the operator and the agent."""
ABSENT = "localhost/memcached-operator/absent:0.0.0"
"""An image that the cluster does not have and cannot pull."""


def tool(*words: str | Path, stdin: str | None = None) -> str:
    """Run one of our command line programs (`python -m …`); return its output. A failure shows it."""
    done = programs.run([sys.executable, "-m", *words], stdin=stdin, cwd=ROOT, env=_environment())  # fmt: skip
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}"
    return done.stdout


def show(*words: str) -> None:
    """Run one of them and show its progress: it may build programs first."""
    words = (sys.executable, "-m", *words)
    done = programs.run(words, cwd=ROOT, env=_environment(), timeout=BUILD, shown=True)
    assert done.returncode == 0, f"{words}: see above"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(ROOT / "api")])}


def make(*words: str) -> str:
    """Run make in this tree and return its output; a failure fails the test."""
    environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", *IMAGES)}
    done = programs.run(["make", "-s", *words], cwd=ROOT, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def next_minor(steps: int) -> str:
    """The version `steps` minor releases after this tree's."""
    major, minor, _ = VERSION.split(".")
    return f"{major}.{int(minor) + steps}.0"


def csv_name(version: str) -> str:
    """The name of a release's ClusterServiceVersion."""
    return f"{PACKAGE}.v{version}"


class Releases:
    """Bundles of fictitious releases, each in its own directory, and a catalog of some of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._manifests = kubectl("kustomize", str(ROOT / "config/manifests")).stdout

    def bundle(
        self,
        version: str,
        *,
        replaces: str = "",
        skips: str = "",
        skip_range: str = "",
        image: str = os.environ.get("IMG", ""),
        memcached: str = IMAGE,
    ) -> Path:
        """Create the bundle of a release; `replaces` and `skips` are versions. Returns the parent directory of bundle/.

        `image` is the operator's image, `memcached` the default image of Memcached objects. The agent's is AGENT_IMG.
        """
        folder = self._folder / f"{version}-{len(list(self._folder.iterdir()))}"
        options = {
            "--version": version,
            "--date": DATE,
            "--channels": CHANNEL,
            "--replaces": csv_name(replaces) if replaces else "",
            "--skips": csv_name(skips) if skips else "",
            "--skip-range": skip_range,
            "--image": image,
            "--agent-image": os.environ.get("AGENT_IMG", ""),
            "--output": str(folder),
        }
        words = [f"{name}={value}" for name, value in options.items() if value]
        default = f"value: {IMAGE}\n"
        assert self._manifests.count(default) == len((CONTROLLER, WEBHOOK))
        tool("bundle", "generate", *words, stdin=self._manifests.replace(default, f"value: {memcached}\n"))
        return folder

    def serve(self, *bundles: Path) -> None:
        """Serve a catalog of these bundles (oldest first) to OLM instead of the previous catalog."""
        directory = self._folder / "served"
        shutil.rmtree(directory, ignore_errors=True)
        tool("bundle", "catalog", "--inline", f"--output={directory}", *bundles)
        tool("olm", "serve", directory / "catalog", f"--name={CATALOG}", f"--namespace={CATALOG_NAMESPACE}")


@dataclass(frozen=True)
class Installation:
    """A Subscription in its own namespace, and the objects that OLM creates for it. No targets: all namespaces."""

    namespace: str
    targets: tuple[str, ...] = ()

    def subscribe(self) -> None:
        """Create the OperatorGroup and the Subscription, as a user does."""
        kubectl("apply", "-f", "-", stdin=objects(self.namespace, self.targets))

    def phase(self, version: str) -> str:
        """The phase of a release; empty if it does not exist."""
        return (self.service_version(version) or {}).get("status", {}).get("phase", "")

    def service_version(self, version: str) -> Object | None:
        """A release's ClusterServiceVersion."""
        path = f"{API}/v1alpha1/namespaces/{self.namespace}/clusterserviceversions/{csv_name(version)}"
        return kube.read(path)

    def releases(self) -> list[str]:
        """The names of the ClusterServiceVersions in this namespace, without copies from other namespaces."""
        path = f"{API}/v1alpha1/namespaces/{self.namespace}/clusterserviceversions?labelSelector=!olm.copiedFrom"
        return kube.names((kube.read(path) or {}).get("items", []))

    def succeeded(self, version: str, timeout: float = SECONDS) -> None:
        """Wait until a release is installed."""

        def is_installed() -> bool:
            found = (self.service_version(version) or {}).get("status", {})
            assert found.get("phase") == "Succeeded", (found.get("phase"), found.get("message"), self.problems())
            return True

        eventually(is_installed, timeout, f"{csv_name(version)} succeeds in {self.namespace}")

    def problems(self) -> list[str]:
        """The messages of the Subscription's conditions that are True."""
        subscription = kube.read(f"{API}/v1alpha1/namespaces/{self.namespace}/subscriptions/{PACKAGE}") or {}
        conditions: list[Object] = subscription.get("status", {}).get("conditions", [])
        return [str(each.get("message")) for each in conditions if each["status"] == "True" and each.get("message")]

    def pods(self, deployment: str) -> list[Object]:
        """The pods of one process, without those being deleted."""
        return [pod for pod in self._all_pods(deployment) if not pod["metadata"].get("deletionTimestamp")]

    def running_releases(self, deployment: str) -> set[str]:
        """The releases that the pods of one process belong to, including pods being deleted: they still serve."""
        return {_release(pod) for pod in self._all_pods(deployment)}

    def _all_pods(self, deployment: str) -> list[Object]:
        component = deployment.removeprefix(f"{PACKAGE}-")
        selector = f"app.kubernetes.io/name={PACKAGE},app.kubernetes.io/component={component}"
        return kube.items("pods", self.namespace, selector)

    def account(self, name: str = CONTROLLER) -> str:
        """The user name of a process's service account."""
        return f"system:serviceaccount:{self.namespace}:{name}"

    def configurations(self) -> list[Object]:
        """The webhook configurations that call a Service in this namespace, each with its plural as kind."""
        found: list[Object] = []
        for plural in CONFIGURATIONS:
            listed: list[Object] = (kube.read(f"{ADMISSION}/{plural}") or {}).get("items", [])
            found += [
                {**each, "kind": plural} for each in listed if _target_service(each).get("namespace") == self.namespace
            ]
        return found

    def remove(self) -> None:
        """Uninstall as a user does, and wait until OLM has deleted the objects it created."""
        kinds = "subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com"
        kubectl("delete", kinds, "--all", "-n", self.namespace, f"--timeout={READY:g}s")
        eventually(lambda: not configurations(), SECONDS, "all webhook configurations of the operator are deleted")
        eventually(lambda: not any(map(self.deployed, (CONTROLLER, WEBHOOK))), SECONDS, "the Deployments are deleted")

    def deployed(self, name: str) -> bool:
        """Whether the Deployment of a process exists."""
        return kube.get("deployments", self.namespace, name) is not None


def _release(pod: Object) -> str:
    """The ClusterServiceVersion of a pod: OLM sets its name as a variable of every container."""
    variables: list[Object] = pod["spec"]["containers"][0]["env"]
    (name,) = [each["value"] for each in variables if each["name"] == "OPERATOR_CONDITION_NAME"]
    return name


def _target_service(configuration: Object) -> Object:
    """The Service that a webhook configuration refers to; empty if it has a URL."""
    return configuration["webhooks"][0]["clientConfig"].get("service", {})


@contextmanager
def olm_stopped() -> Generator[None]:
    """Stop the OLM operator until the block ends."""
    state, _ = running.local_cluster()
    end(state, "olm-operator")
    try:
        yield
    finally:
        tool("olm", "up")


def configurations(version: str = "") -> list[Object]:
    """The webhook configurations that OLM created, for one release or for all."""
    found: list[Object] = []
    for plural in CONFIGURATIONS:
        found += (kube.read(f"{ADMISSION}/{plural}?labelSelector=olm.owner") or {}).get("items", [])
    return [each for each in found if not version or each["metadata"]["labels"]["olm.owner"] == csv_name(version)]


@contextmanager
def subscribed(targets: Sequence[str] = (), *, own: bool = False) -> Generator[Installation]:
    """Create a Subscription for `targets` (empty: all namespaces; `own`: also its own); uninstall afterwards."""
    with kube.temporary_namespace() as namespace:
        installation = Installation(namespace, (*targets, namespace) if own else tuple(targets))
        try:
            installation.subscribe()
            yield installation
        finally:
            installation.remove()


def permissions(installation: Installation) -> list[Object]:
    """The RBAC rules of the installed bundle; only the controller's account has any."""
    found = installation.service_version(VERSION)
    assert found is not None
    install = found["spec"]["install"]["spec"]
    assert not install.get("clusterPermissions")
    return [rule for each in install["permissions"] for rule in each["rules"]]


def condition_permissions(installation: Installation) -> set[Grant]:
    """The permissions that OLM adds for every account, so that it can report whether it is upgradeable."""
    return {
        Grant(verb, "operators.coreos.com", "operatorconditions", csv_name(VERSION), installation.namespace)
        for verb in ("get", "update", "patch")
    }


def objects(namespace: str, targets: Sequence[str]) -> Object:
    """The OperatorGroup and the Subscription that a user applies."""
    group: dict[str, Any] = {"targetNamespaces": list(targets)} if targets else {}
    subscription = {
        "name": PACKAGE,
        "channel": CHANNEL,
        "source": CATALOG,
        "sourceNamespace": CATALOG_NAMESPACE,
        "installPlanApproval": "Automatic",
    }
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "operators.coreos.com/v1",
                "kind": "OperatorGroup",
                "metadata": {"name": "operators", "namespace": namespace},
                "spec": group,
            },
            {
                "apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "Subscription",
                "metadata": {"name": PACKAGE, "namespace": namespace},
                "spec": subscription,
            },
        ],
    }
