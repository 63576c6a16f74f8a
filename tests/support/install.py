"""The targets of the Makefile that put the operator into the cluster and take it out again."""

import subprocess

from support import installed
from support.kube import kubectl


def make(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a target; what it prints is in the message of a failure."""
    done = subprocess.run(
        ["make", *words], cwd=installed.ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"make {' '.join(words)}: {done.stdout}{done.stderr}"
    return done


def left() -> list[str]:
    """Our cluster-wide objects and the RoleBindings of all namespaces, by kind and name."""
    kinds = {obj["kind"] for obj in installed.rendered()}
    cluster_wide = {"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
    listed = ",".join(kinds & (cluster_wide | installed.CONFIGURATIONS.keys()))
    names = kubectl("get", listed, "-o", "name").stdout.split()
    names += kubectl("get", "rolebindings", "--all-namespaces", "-o", "name").stdout.split()
    return [name for name in names if "memcached" in name or "appservice" in name]
