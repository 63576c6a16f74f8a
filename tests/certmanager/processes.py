"""The real cert-manager: its three processes on loopback, and the objects of its own chart."""

import os
import subprocess
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bundle.objects import parse
from certmanager.certificates import ISSUERS, is_ready
from cluster.public.programs import CERT_MANAGER_FAMILY, directory, ensure_built
from faults.process import die_with_parent
from integration.control_plane import NAMESPACES, ControlPlane, until
from memcached_operator.kube.resource import Key, Object
from project.yaml_text import yaml_of
from support.helm import helm, sources
from support.kube import kubectl
from support.ports import free_port
from support.waiting import READY, STEP

PROGRAM = "cert-manager"
MODULE = "github.com/cert-manager/cert-manager"
NAMESPACE = "cert-manager"
"""The namespace in tools/go/cert-manager/main.go, and the name of the release."""
PARTS = ("CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
"""The kinds of its chart that are needed without pods. The processes have all permissions."""
HELM = "helm-3"
"""`make test-chart` shows that Helm 3 and Helm 4 render the same; Helm 3 is built in half the time."""


@contextmanager
def cert_manager(plane: ControlPlane, folder: Path) -> Generator[None]:
    """Run cert-manager until the block ends; `folder` gets its logs. Its processes must stop without an error."""
    ensure_built(CERT_MANAGER_FAMILY, [PROGRAM])
    port, health_port = free_port(), free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(plane.kubeconfig),
        "PORT": str(port),
        "HEALTH_PORT": str(health_port),
    }
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml_of(*_objects(folder, port)))
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_running(name, environ, folder / f"{name}.log"))
            for name in ("controller", "webhook", "cainjector")
        ]

        def ready() -> bool:
            ended = [each.args for each in processes if each.poll() is not None]
            assert not ended, f"{ended} ended: see the logs in {folder}"
            return _is_ready(plane)

        until(ready, READY)
        yield
    assert [each.returncode for each in processes] == [0] * len(processes), f"see the logs in {folder}"


def _objects(folder: Path, port: int) -> Iterator[Object]:
    """The objects of the chart in cert-manager's module, with the webhook at this port of loopback."""
    chart = sources(CERT_MANAGER_FAMILY, MODULE) / "deploy/charts/cert-manager"
    options = ("--set=crds.enabled=true", f"--set=webhook.url.host=localhost:{port}")
    text = helm(HELM, folder).output("template", NAMESPACE, chart, f"--namespace={NAMESPACE}", *options)
    return (each for each in parse(text, str(chart)) if each["kind"] in PARTS)


@contextmanager
def _running(name: str, environ: dict[str, str], log: Path) -> Generator[subprocess.Popen[bytes]]:
    """One process, which ends with SIGTERM."""
    command = [str(directory(CERT_MANAGER_FAMILY) / PROGRAM), name]
    with (
        log.open("wb") as file,
        # In its own session: Ctrl-C on a terminal reaches only the tests, which then stop it.
        subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            preexec_fn=die_with_parent,
        ) as process,
    ):
        try:
            yield process
            process.terminate()
            process.wait(STEP)
        finally:
            process.kill()


def _is_ready(plane: ControlPlane) -> bool:
    """Whether all three processes work: the API server trusts the webhook, and an Issuer has a status."""
    meta = {"namespace": NAMESPACE, "name": "probe"}
    issuer: Object = {"apiVersion": ISSUERS.api_version, "kind": "Issuer", "metadata": meta, "spec": {"selfSigned": {}}}
    if plane.rejects(ISSUERS, issuer):
        return False
    key = Key(ISSUERS, NAMESPACE, "probe")
    if plane.get(key) is None:
        plane.create(ISSUERS, issuer)
    return is_ready(plane.must_get(key))
