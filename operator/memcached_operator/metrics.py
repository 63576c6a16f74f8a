"""Metrics, with the names that controller-runtime uses, so that dashboards for Go operators work."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector


class CountedTogether(Collector):
    """Gauges whose values one function sums up, once per scrape.

    `descriptions`: the description of each gauge, by its name.
    """

    def __init__(self, descriptions: Mapping[str, str]) -> None:
        self._descriptions = descriptions
        self.count: Callable[[], Mapping[str, int]] = lambda: dict.fromkeys(descriptions, 0)
        """Called once per scrape: the value of each gauge, by its name. By default, all are 0."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The gauges without values, so that a registry rejects a second gauge with one of these names."""
        return (GaugeMetricFamily(name, text) for name, text in self._descriptions.items())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges with their present values."""
        values = self.count()
        return (GaugeMetricFamily(name, text, values[name]) for name, text in self._descriptions.items())


class ObjectGauges(Collector):
    """Gauges of objects. `labels`: those of the namespace and the name. Prometheus would rename `namespace`.

    `descriptions`: the description of each gauge, by its name.
    """

    def __init__(self, labels: tuple[str, str], descriptions: Mapping[str, str]) -> None:
        self._labels, self._descriptions = labels, descriptions
        self.read: Callable[[], Iterable[tuple[tuple[str, str], Mapping[str, int]]]] = lambda: ()
        """Called once per scrape: the namespace and the name of each object, and its values by the names of gauges."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The gauges without values."""
        return (GaugeMetricFamily(name, text, labels=self._labels) for name, text in self._descriptions.items())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges with their present values."""
        families = {each.name: each for each in self.describe()}
        for labels, values in self.read():
            for name, value in values.items():
                families[name].add_metric(labels, value)
        return iter(families.values())


REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

RECONCILES = Counter(
    "controller_runtime_reconcile", "Reconciliations per controller.", ["controller", "result"], registry=REGISTRY
)
RECONCILE_ERRORS = Counter(
    "controller_runtime_reconcile_errors",
    "Reconciliations that ended in an error, per controller.",
    ["controller"],
    registry=REGISTRY,
)
RECONCILE_PANICS = Counter(
    "controller_runtime_reconcile_panics",
    "Reconciliations that ended in an unexpected error, per controller.",
    ["controller"],
    registry=REGISTRY,
)
RECONCILE_TIME = Histogram(
    "controller_runtime_reconcile_time_seconds",
    "Length of time per reconciliation, in seconds.",
    ["controller"],
    registry=REGISTRY,
)
QUEUE_DEPTH = Gauge("workqueue_depth", "Keys waiting for a worker.", ["name"], registry=REGISTRY)
QUEUE_ADDS = Counter("workqueue_adds", "Keys added.", ["name"], registry=REGISTRY)
QUEUE_RETRIES = Counter("workqueue_retries", "Keys added again after a failure.", ["name"], registry=REGISTRY)
REQUESTS = Counter("rest_client_requests", "Requests to the API server.", ["code", "method"], registry=REGISTRY)
WATCH_RETRIES = Counter(
    "memcached_operator_watch_retries",
    "Lists and watches that failed and were retried.",
    ["resource", "reason"],
    registry=REGISTRY,
)
DISRUPTIONS = Counter(
    "memcached_operator_pod_disruptions",
    "Pods that Kubernetes stopped, per controller and reason.",
    ["controller", "reason"],
    registry=REGISTRY,
)
OUTDATED_IMAGES = "memcached_operator_outdated_images"
PROBLEM_IMAGES = "memcached_operator_problem_images"
OUTDATED_AGENTS = "memcached_operator_outdated_agents"
IMAGES = CountedTogether(
    {
        OUTDATED_IMAGES: "Memcached and MemcachedProxy objects whose spec.image is not this operator's default.",
        PROBLEM_IMAGES: "Memcached and MemcachedProxy objects that run a memcached with known problems.",
        OUTDATED_AGENTS: "Memcached and MemcachedProxy objects whose spec.agent.image is not this operator's default.",
    }
)
REGISTRY.register(IMAGES)
READY_PROXIES = "memcached_operator_proxy_ready_pods"
PROXY_UP_TO_DATE = "memcached_operator_proxy_up_to_date"
PROXIES = ObjectGauges(
    ("proxy_namespace", "proxy"),
    {
        READY_PROXIES: "Ready pods of a MemcachedProxy.",
        PROXY_UP_TO_DATE: "1 if all pods of a MemcachedProxy are ready, and have its spec and all slots.",
    },
)
REGISTRY.register(PROXIES)
SCALING_WAITS = "memcached_operator_scaling_waiting_since_timestamp_seconds"
CHANGES = ObjectGauges(
    ("memcached_namespace", "memcached"),
    {SCALING_WAITS: "Time from which a phase of a change of size has waited for slots or proxies."},
)
REGISTRY.register(CHANGES)
LEADER = Gauge("leader_election_master_status", "1 while this process is the leader.", ["name"], registry=REGISTRY)
