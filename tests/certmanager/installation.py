"""The operator's objects, as kubectl and Helm install them with cert-manager, and one admission process."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from certmanager.admission import Admission, served
from certmanager.certificates import CERTIFICATES, content, revision
from integration.control_plane import NAMESPACES, ControlPlane, until
from integration.issuing import Installation
from memcached_operator.certificates.issuer import WebhookNames
from memcached_operator.certificates.pki import KeyPair
from memcached_operator.kube.resource import Key, Object
from project.yaml_text import yaml_of
from support.charts import NAMESPACE, VARIANTS
from support.helm import helm
from support.installed import CERTIFICATE, CONFIGURATIONS, rendered
from support.kube import kubectl
from support.waiting import READY

DEFINITION = "CustomResourceDefinition"
SERVICE = "memcached-operator-webhook-service"
SERVER_NAME = f"{SERVICE}.{NAMESPACE}.svc"
"""The name for which an API server verifies the certificate of a webhook with this Service."""
SERVING = Key(CERTIFICATES, NAMESPACE, "memcached-operator-serving-cert")
AUTHORITY = Key(CERTIFICATES, NAMESPACE, "memcached-operator-webhook-ca")
NAMES = WebhookNames(
    NAMESPACE,
    CERTIFICATE,
    SERVICE,
    CONFIGURATIONS["MutatingWebhookConfiguration"],
    CONFIGURATIONS["ValidatingWebhookConfiguration"],
)


def of_overlay(_: Path) -> Iterable[Object]:
    """The objects of the overlay, as `make deploy OVERLAY=config/overlays/certmanager` applies them."""
    return rendered("config/overlays/certmanager")


def of_chart(folder: Path) -> Iterable[Object]:
    """The objects of the chart, as Helm renders it."""
    return helm("helm-3", folder).objects(VARIANTS["cert-manager"])


SOURCES: Mapping[str, Callable[[Path], Iterable[Object]]] = {"overlay": of_overlay, "chart": of_chart}


@dataclass(frozen=True)
class Installed:
    """An installation whose certificate is issued, and its admission. `seconds`: from its creation until then."""

    objects: Installation
    admission: Admission
    seconds: float

    @property
    def plane(self) -> ControlPlane:
        """The control plane."""
        return self.objects.plane

    def pair(self) -> KeyPair:
        """The pair in the Secret."""
        return self.objects.pair()

    def trusts(self, *authorities: bytes) -> bool:
        """Whether each webhook of both configurations has these CAs."""
        return all(each in bundle for bundle in self.objects.bundles() for each in authorities)

    def trusts_only(self, authority: bytes) -> bool:
        """Whether each webhook of both configurations has this CA and no other one."""
        return self.objects.bundles() == [authority] * 6

    def mount(self) -> None:
        """Write the content of the Secret into the pod, as its kubelet does."""
        self.admission.files.write(content(self.plane, NAMESPACE, CERTIFICATE))

    def served(self) -> bytes:
        """The certificate that the API server gets, with the CAs that it trusts."""
        return served(self.admission.port, SERVER_NAME, self.objects.bundles()[0])


@contextmanager
def installed(plane: ControlPlane, source: str, folder: Path) -> Generator[Installed]:
    """Install the objects of a source, wait for the certificate and run admission until the block ends."""
    admission = Admission(folder)
    found = Installed(Installation(plane, NAMES), admission, 0.0)
    objects = list(SOURCES[source](folder))
    definitions = [each for each in objects if each["kind"] == DEFINITION]
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    started = time.monotonic()
    try:
        _apply(_adapted(each, admission.port) for each in objects)
        for each in (AUTHORITY, SERVING):
            revision(plane, each)
        until(lambda: found.trusts_only(found.pair().ca), READY)
        seconds = time.monotonic() - started
        found.mount()
        admission.start()
        yield Installed(found.objects, admission, seconds)
    finally:
        admission.stop()
        others = yaml_of(*(each for each in objects if each["kind"] != DEFINITION))
        kubectl("delete", "--ignore-not-found", "--wait", "-f", "-", stdin=others)
        # It contains the Secrets, which cert-manager keeps.
        kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait")
        _apply(definitions)


def _apply(objects: Iterable[Object]) -> None:
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml_of(*objects))


def _adapted(obj: Object, port: int) -> Object:
    """An object for these tests. Names and certificates are those of a cluster.

    The API server reaches no Service: it finds admission at this port of loopback. The CustomResourceDefinitions accept
    every spec: only admission denies one.
    """
    found = deepcopy(obj)
    if found["kind"] == DEFINITION:
        for version in found["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            schema.pop("x-kubernetes-validations", None)
            schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if (found["kind"], found["metadata"]["name"]) == ("Service", SERVICE):
        found["spec"] |= {"type": "ExternalName", "externalName": "localhost"}
    for webhook in found.get("webhooks", ()):
        webhook["clientConfig"]["service"]["port"] = port
    return found
