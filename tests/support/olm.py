"""The operator as the real OLM installs it: catalogues of its releases, Subscriptions, and what becomes of them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundle.release import project_version
from olm import running
from support import kube
from support.kube import Object, eventually, kubectl
from support.memcached import IMAGE
from support.rights import Grant

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
INSTALL_SECONDS = 60
"""From the Subscription to Succeeded: what is promised."""
SECONDS = 90
"""For what nothing is promised about, on a slow machine."""
DATE = "2030-01-02"
"""The day of every release."""
ABSENT = "localhost/memcached-operator/absent:0.0.0"
"""An image that the cluster has not and cannot pull."""


def tool(*words: str | Path, stdin: str | None = None) -> str:
    """Run one of our own command lines (`python -m …`) and return its output; a failure shows what it said."""
    done = subprocess.run(
        [sys.executable, "-m", *words], input=stdin, capture_output=True, text=True, check=False, timeout=600,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(ROOT / "api")])},
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}"
    return done.stdout


def make(*words: str) -> str:
    """Run make in this tree and return its output; a failure fails the test."""
    environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "IMG")}
    done = subprocess.run(
        ["make", "-s", *words], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def later(steps: int) -> str:
    """The version of a release to come: so many minor ones after this tree's."""
    major, minor, _ = VERSION.split(".")
    return f"{major}.{int(minor) + steps}.0"


def csv_name(version: str) -> str:
    """The name of a release's ClusterServiceVersion."""
    return f"{PACKAGE}.v{version}"


class Releases:
    """Bundles of releases that were never made, each below a directory of its own, and a catalogue of some of them."""

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
        """Make the bundle of a release; `replaces` and `skips` are versions. Returns the directory above bundle/.

        `image` is the operator's, `memcached` the one that it gives to caches without one.
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
            "--output": str(folder),
        }
        words = [f"{name}={value}" for name, value in options.items() if value]
        default = f"value: {IMAGE}\n"
        assert self._manifests.count(default) == len((CONTROLLER, WEBHOOK))
        tool("bundle", "generate", *words, stdin=self._manifests.replace(default, f"value: {memcached}\n"))
        return folder

    def serve(self, *bundles: Path) -> None:
        """Have OLM read a catalogue of these bundles, oldest first, in place of the one before."""
        place = self._folder / "served"
        shutil.rmtree(place, ignore_errors=True)
        tool("bundle", "catalog", "--inline", f"--output={place}", *bundles)
        tool("olm", "serve", place / "catalog", f"--name={CATALOG}", f"--namespace={CATALOG_NAMESPACE}")


@dataclass(frozen=True)
class Installation:
    """A Subscription in a namespace of its own, and what OLM makes of it. No targets: all namespaces."""

    namespace: str
    targets: tuple[str, ...] = ()

    def subscribe(self) -> None:
        """Install as a user does."""
        kubectl("apply", "-f", "-", stdin=objects(self.namespace, self.targets))

    def phase(self, version: str) -> str:
        """The phase of a release; empty where it is not there (yet)."""
        return (self.service_version(version) or {}).get("status", {}).get("phase", "")

    def service_version(self, version: str) -> Object | None:
        """A release's ClusterServiceVersion."""
        path = f"{API}/v1alpha1/namespaces/{self.namespace}/clusterserviceversions/{csv_name(version)}"
        return kube.read(path)

    def releases(self) -> list[str]:
        """The names of the ClusterServiceVersions here that are not copies of another namespace's."""
        path = f"{API}/v1alpha1/namespaces/{self.namespace}/clusterserviceversions?labelSelector=!olm.copiedFrom"
        return kube.names((kube.read(path) or {}).get("items", []))

    def succeeded(self, version: str, timeout: float = SECONDS) -> None:
        """Wait until a release is installed."""

        def look() -> bool:
            found = (self.service_version(version) or {}).get("status", {})
            assert found.get("phase") == "Succeeded", (found.get("phase"), found.get("message"), self.trouble())
            return True

        eventually(look, timeout, f"{csv_name(version)} succeeds in {self.namespace}")

    def trouble(self) -> list[str]:
        """What the Subscription complains of."""
        subscription = kube.read(f"{API}/v1alpha1/namespaces/{self.namespace}/subscriptions/{PACKAGE}") or {}
        conditions: list[Object] = subscription.get("status", {}).get("conditions", [])
        return [str(each.get("message")) for each in conditions if each["status"] == "True" and each.get("message")]

    def pods(self, deployment: str) -> list[Object]:
        """The pods of one of the processes that are not being deleted."""
        return [pod for pod in self._every_pod(deployment) if not pod["metadata"].get("deletionTimestamp")]

    def at_work(self, deployment: str) -> set[str]:
        """The releases of one of the processes' pods, those being deleted included: they serve to their end."""
        return {_release(pod) for pod in self._every_pod(deployment)}

    def _every_pod(self, deployment: str) -> list[Object]:
        component = deployment.removeprefix(f"{PACKAGE}-")
        selector = f"app.kubernetes.io/name={PACKAGE},app.kubernetes.io/component={component}"
        return kube.items("pods", self.namespace, selector)

    def account(self, name: str = CONTROLLER) -> str:
        """Whom one of the processes runs as."""
        return f"system:serviceaccount:{self.namespace}:{name}"

    def configurations(self) -> list[Object]:
        """The webhook configurations that call a service here, each with its kind."""
        found: list[Object] = []
        for plural in CONFIGURATIONS:
            listed: list[Object] = (kube.read(f"{ADMISSION}/{plural}") or {}).get("items", [])
            found += [{**each, "kind": plural} for each in listed if _called(each).get("namespace") == self.namespace]
        return found

    def remove(self) -> None:
        """Uninstall as a user does, and wait until OLM has taken away what it had made."""
        kinds = "subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com"
        kubectl("delete", kinds, "--all", "-n", self.namespace, "--timeout=60s")
        eventually(lambda: not configurations(), SECONDS, "no webhook configuration of the operator is left")
        eventually(lambda: not any(map(self.deployed, (CONTROLLER, WEBHOOK))), SECONDS, "the Deployments are gone")

    def deployed(self, name: str) -> bool:
        """Whether one of the processes is there."""
        return kube.get("deployments", self.namespace, name) is not None


def _release(pod: Object) -> str:
    """The ClusterServiceVersion that a pod is of: OLM writes its name into every container."""
    variables: list[Object] = pod["spec"]["containers"][0]["env"]
    (name,) = [each["value"] for each in variables if each["name"] == "OPERATOR_CONDITION_NAME"]
    return name


def _called(configuration: Object) -> Object:
    """The service that a webhook configuration has called; none where that is a URL."""
    return configuration["webhooks"][0]["clientConfig"].get("service", {})


@contextmanager
def away() -> Generator[None]:
    """OLM does not look after what it has installed; afterwards it does again."""
    state, _ = running.local_cluster()
    running.end(state, "olm-operator")
    try:
        yield
    finally:
        tool("olm", "up")


def configurations(version: str = "") -> list[Object]:
    """The webhook configurations that OLM made: of one release, or of all."""
    found: list[Object] = []
    for plural in CONFIGURATIONS:
        found += (kube.read(f"{ADMISSION}/{plural}?labelSelector=olm.owner") or {}).get("items", [])
    return [each for each in found if not version or each["metadata"]["labels"]["olm.owner"] == csv_name(version)]


@contextmanager
def subscribed(targets: Sequence[str] = (), *, own: bool = False) -> Generator[Installation]:
    """A Subscription for some namespaces; none: for all, `own`: for the operator's own. All of it goes afterwards."""
    with kube.own_namespace() as namespace:
        installation = Installation(namespace, (*targets, namespace) if own else tuple(targets))
        try:
            installation.subscribe()
            yield installation
        finally:
            installation.remove()


def permissions(installation: Installation) -> list[Object]:
    """The rules that the installed bundle asks for, of all of its accounts: those of the controller."""
    found = installation.service_version(VERSION)
    assert found is not None
    install = found["spec"]["install"]["spec"]
    assert not install.get("clusterPermissions")
    return [rule for each in install["permissions"] for rule in each["rules"]]


def condition_rights(installation: Installation) -> set[Grant]:
    """What OLM adds for every account: to say whether an upgrade may come."""
    return {
        Grant(verb, "operators.coreos.com", "operatorconditions", csv_name(VERSION), installation.namespace)
        for verb in ("get", "update", "patch")
    }


def objects(namespace: str, targets: Sequence[str]) -> Object:
    """What a user applies: the OperatorGroup and the Subscription."""
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
