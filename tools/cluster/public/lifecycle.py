"""For other tools: start, find and remove clusters, and choose their name, mode and version."""

from cluster import record
from cluster.down import down
from cluster.errors import ClusterError
from cluster.paths import State
from cluster.plan import Plan
from cluster.record import choose_mode, choose_version, cluster_name
from cluster.run.supervision import READY_SECONDS, answering, statuses
from cluster.up import foreign_kubeconfig, steps, up

__all__ = [
    "READY_SECONDS",
    "choose_mode",
    "choose_version",
    "cluster_name",
    "current",
    "down",
    "foreign_kubeconfig",
    "running",
    "statuses",
    "steps",
    "up",
]


def current() -> State:
    """The files of the cluster named by CLUSTER_NAME."""
    return record.state_of(record.cluster_name())


def running() -> tuple[State, Plan]:
    """The cluster's files and plan; raises ClusterError if it is not running."""
    state = current()
    plan = record.read(state)
    if not plan or not answering(state):
        raise ClusterError("the cluster is not running: start it with `python3 -m cluster up`")
    return state, plan
