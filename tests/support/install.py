"""Helpers for the Makefile targets that install and uninstall the operator."""

import subprocess

from project.page import OF_THE_DEMO
from support import installed, programs
from support.kube import kubectl


def make(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a target; the message of a failure contains its output."""
    done = programs.run(["make", *words], cwd=installed.ROOT)
    assert done.returncode == 0, f"make {' '.join(words)}: {done.stdout}{done.stderr}"
    return done


def remaining() -> list[str]:
    """Our cluster-wide objects and the RoleBindings of all namespaces, by kind and name.

    The namespace of `make demo` is not ours: it is kept for the user to look at.
    """
    kinds = {obj["kind"] for obj in installed.rendered()}
    cluster_wide = {"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
    listed = ",".join(kinds & (cluster_wide | installed.CONFIGURATIONS.keys()))
    names = kubectl("get", listed, "-o", "name").stdout.split()
    names += kubectl("get", "rolebindings", "--all-namespaces", "-o", "name").stdout.split()
    names = [name for name in names if name != f"namespace/{OF_THE_DEMO}"]
    return [name for name in names if "memcached" in name or "appservice" in name]
