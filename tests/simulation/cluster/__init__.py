"""The controllers, the scheduler and the kubelet of a cluster in memory."""

from simulation.cluster.cluster import Cluster

__all__ = ["Cluster"]
