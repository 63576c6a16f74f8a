"""Running programs in this shell with the cluster: the controller, the demo, and commands of others."""

import os
import re
import sys

from cluster.errors import ClusterError
from project.environment import ROOT, use_cluster

IMAGE_PATCH = "config/base/related_image_patch.yaml"
VARIABLE = "RELATED_IMAGE_MEMCACHED"


def run_controller(metrics_port: int, probes_port: int) -> None:
    """Become the controller: no leader election, no webhooks; it listens on loopback only. Raises ClusterError."""
    os.environ[VARIABLE] = memcached_image((ROOT / IMAGE_PATCH).read_text())
    addresses = (f"metrics-bind-address=127.0.0.1:{metrics_port}", f"health-probe-bind-address=127.0.0.1:{probes_port}")
    execute([sys.executable, "-m", "memcached_operator", *(f"--{each}" for each in addresses)])


def memcached_image(patch: str) -> str:
    """The image in the patch of the Deployment. Raises ClusterError if there is none."""
    found = re.search(r"^ *value: (\S+:\S+)$", patch, flags=re.MULTILINE)
    if not found:
        raise ClusterError(f"{IMAGE_PATCH} has no image: set the value of {VARIABLE}")
    return found[1]


def execute(words: list[str]) -> None:
    """Replace this process with a command that has KUBECONFIG and kubectl. Raises ClusterError."""
    use_cluster()
    sys.stdout.flush()
    try:
        os.execvp(words[0], words)  # noqa: S606
    except FileNotFoundError as error:
        raise ClusterError(f"there is no program {words[0]}") from error
