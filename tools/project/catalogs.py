"""A catalog of this tree's bundle, served by OLM on the local cluster."""

import shutil
import subprocess
import sys
from collections.abc import Sequence

from bundle.release import DEFAULT_CHANNEL, PACKAGE
from bundle.subscription import NAMESPACE, subscription
from cluster.console.progress import Progress
from cluster.errors import ClusterError
from olm import catalogs, components, running
from project.environment import ROOT, kubectl, use_cluster
from project.images import Images

LOCAL = f"{PACKAGE}-local"
"""The CatalogSource of `make olm`."""
MANIFESTS = "config/manifests"


def serve_tree(images: Images, options: Sequence[str]) -> None:
    """Serve this tree's bundle with these images, and print how OLM installs it. Raises ClusterError.

    `options` are those of `bundle generate`.
    """
    # Imported on demand: it needs packages of .venv, which most commands do without.
    from bundle.catalog import read_bundle

    output = ROOT / "build/olm"
    use_cluster()
    running.up(Progress(running.STEPS))
    shutil.rmtree(output, ignore_errors=True)
    words = [*options, f"--image={images.operator}", f"--agent-image={images.agent}", f"--output={output}"]
    _bundle("generate", *words, stdin=kubectl("kustomize", MANIFESTS))
    _bundle("catalog", "--inline", f"--output={output}", str(output))
    with Progress(1).step(f"serve the catalog {LOCAL}"):
        catalogs.serve(output / "catalog", LOCAL, components.NAMESPACE)
    file = output / "subscription.yaml"
    file.write_text(subscription(LOCAL, components.NAMESPACE, read_bundle(output).annotations()[DEFAULT_CHANNEL]))
    print(instructions(str(file.relative_to(ROOT))))


def instructions(subscription: str) -> str:
    """How to install the served bundle."""
    return f"""\
Install the operator with OLM:
  eval "$(PYTHONPATH=tools python3 -m cluster up)"
  kubectl apply -f {subscription}
  kubectl -n {NAMESPACE} get clusterserviceversions   # repeat until the phase is Succeeded"""


def _bundle(*words: str, stdin: str = "") -> None:
    """Run `bundle`; its errors are shown. Raises ClusterError if it fails."""
    command = [sys.executable, "-m", "bundle", *words]
    if subprocess.run(command, input=stdin, stdout=subprocess.DEVNULL, text=True, check=False, cwd=ROOT).returncode:
        raise ClusterError(f"`bundle {words[0]}` failed: see above")
