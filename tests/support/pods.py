"""Where pods can run, and the cluster with the deployed operator."""

import os

import pytest

from cluster.public.lifecycle import choose_mode, current, foreign_kubeconfig
from cluster.versions import KUBERNETES
from project.environment import find_cluster, use_kubectl_of

NO_PODS = "it needs pods: run it as root on Linux, or set KUBECONFIG to a cluster"


def require(*, own: bool = False) -> None:
    """Fail where no pods can run; skip there if PODS is `optional`. `own`: not in the cluster of KUBECONFIG."""
    if choose_mode(os.environ) != "node" and (own or not os.environ.get("KUBECONFIG")):
        (pytest.skip if os.environ.get("PODS") == "optional" else pytest.fail)(NO_PODS)


def use_operator() -> None:
    """Let the tests of this process use the cluster into which `make deployed` has deployed the operator."""
    require()
    if not find_cluster():
        pytest.fail("no cluster is running: `make deployed` starts one and deploys the operator")
    if os.environ.get("KUBECTL_VERSION") or not foreign_kubeconfig(current()):
        use_kubectl_of(KUBERNETES)
