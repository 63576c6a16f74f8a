"""Kubelets that run containers. Without them, pods become ready immediately and have none, as with kwok."""

from collections.abc import Callable
from datetime import timedelta

from memcached_operator.kube.resource import Key, Object, nested_map
from simulation.clock import now
from simulation.cluster import nodes
from simulation.cluster.access import Access
from support.nodes import Kubelet, Nodes


class Kubelets:
    """The kubelets of all pods, by their uids. `nodes`: how slow they are, and what goes wrong."""

    def __init__(self, nodes: Nodes, wake: Callable[[], None]) -> None:
        self.nodes, self.wake = nodes, wake
        self.pods: dict[str, Pod] = {}

    def sync(self, access: Access, key: Key) -> float | None:
        """Run or remove a pod. Returns the seconds until its kubelet continues, or None until something changes."""
        pod = access.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            return nodes.sync(access, key)
        found = self.pods.setdefault(pod["metadata"]["uid"], Pod(pod, self.nodes))
        seconds = found.sync(pod)
        if found.kubelet.removed:
            return nodes.sync(access, key)
        if found.kubelet.shown and nested_map(pod, "status").get("phase") not in ("Failed", "Succeeded"):
            access.put_status(pod, {**nested_map(pod, "status"), "podIP": "10.0.0.1", **found.kubelet.shown})
        return seconds

    def of(self, pod: Object) -> Kubelet:
        """The kubelet of a pod that is bound to a node."""
        return self.pods[pod["metadata"]["uid"]].kubelet

    def correct(self) -> None:
        """Let kubelets work, and their containers become ready. Resizes and images stay as they are."""
        self.nodes.reaction = Nodes.reaction
        for each in (self.nodes.broken, self.nodes.races, self.nodes.kills):
            each.clear()
        self.wake()

    def crash(self, pod: Object, name: str) -> None:
        """A container of a pod ends by itself, and is restarted."""
        self.of(pod).crashed.add(name)
        self.wake()


class Pod:
    """A pod with its kubelet, which continues when it is due."""

    def __init__(self, pod: Object, nodes: Nodes) -> None:
        self.kubelet = Kubelet(pod, nodes, now)
        self._steps = self.kubelet.run()
        self._due = now()
        self._sleeps = True

    def sync(self, pod: Object) -> float | None:
        """The newest state of the pod. Returns the seconds until the kubelet continues, or None."""
        self.kubelet.model.pod = pod
        if not self._sleeps or now() >= self._due:
            seconds = next(self._steps, None)
            self._sleeps = seconds is not None
            self._due = now() + timedelta(seconds=seconds or 0)
        return max(0.0, (self._due - now()).total_seconds()) if self._sleeps else None
