"""A catalog of this tree's bundle, served by OLM on the local cluster."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bundle.release import PACKAGE
from bundle.subscription import NAMESPACE
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
    output = ROOT / "build/olm"
    _start_olm(output)
    words = ["generate", *options, *_image_options(images), f"--output={output}"]
    _bundle(words, stdin=kubectl("kustomize", MANIFESTS))
    _serve(LOCAL, output, [output])
    subscription = output / "subscription.yaml"
    subscription.write_text(_bundle(["subscription", "--source", LOCAL, "--bundle", str(output)]))
    print(instructions(str(subscription.relative_to(ROOT))))


def instructions(subscription: str) -> str:
    """How to install the served bundle."""
    return f"""\
Install the operator with OLM:
  eval "$(PYTHONPATH=tools python3 -m cluster up)"
  kubectl apply -f {subscription}
  kubectl -n {NAMESPACE} get clusterserviceversions   # repeat until the phase is Succeeded"""


def _image_options(images: Images) -> list[str]:
    return [f"--image={images.operator}", f"--agent-image={images.agent}"]


def _start_olm(output: Path) -> None:
    use_cluster()
    running.up(Progress(running.STEPS))
    shutil.rmtree(output, ignore_errors=True)


def _serve(name: str, output: Path, bundles: Sequence[Path]) -> None:
    _bundle(["catalog", "--inline", f"--output={output}", *map(str, bundles)])
    with Progress(1).step(f"serve the catalog {name}"):
        catalogs.serve(output / "catalog", name, components.NAMESPACE)


def _bundle(words: Sequence[str], stdin: str = "") -> str:
    """Run `bundle`; its errors are shown. Raises ClusterError if it fails."""
    command = [sys.executable, "-m", "bundle", *words]
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise ClusterError(f"`bundle {words[0]}` failed: see above")
    return done.stdout
