"""The names of all metrics that the agent, the controller and admission can expose."""

from collections.abc import Iterator
from typing import cast

from prometheus_client import CollectorRegistry

from memcached_agent.extstore import families as extstore
from memcached_agent.insight import families as insight
from memcached_agent.metrics import agent, arguments, connections, families, memory, proxy, reloads, restarts, warm
from memcached_agent.metrics.exposition import Metric
from memcached_operator.metrics import REGISTRY
from memcached_webhooks.metrics import Metrics

SERIES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
"""What prometheus-client adds to the name of a metric of a type."""


def agent_metrics() -> set[str]:
    """The metrics of the agent: its constants, and the tables of memcached's statistics."""
    modules = (agent, arguments, connections, extstore, families, insight, memory, proxy, reloads, restarts, warm)
    found = {each for module in modules for value in vars(module).values() for each in _metrics(value)}
    return {name for each in found for name in _series(each)}


def _series(metric: Metric) -> list[str]:
    """The names of a metric of the agent, whose counters have their full names."""
    return [f"{metric.name}{end}" for end in (SERIES["histogram"] if metric.type == "histogram" else ("",))]


def _metrics(value: object) -> Iterator[Metric]:
    match value:
        case Metric():
            yield value
        case tuple():
            rows = cast("tuple[object, ...]", value)
            yield from (each.metric for each in rows if isinstance(each, families.Row))
        case _:
            pass


def process_metrics(registry: CollectorRegistry) -> set[str]:
    """The metrics of a registry, as Prometheus stores them."""
    return {f"{each.name}{end}" for each in registry.collect() for end in SERIES.get(each.type, ("",))}


def caches() -> set[str]:
    """What a dashboard of caches can show: the agents' metrics, and Prometheus' own `up`."""
    return agent_metrics() | {"up"}


def operator() -> set[str]:
    """What a dashboard of the operator can show."""
    return process_metrics(REGISTRY) | process_metrics(Metrics().registry) | {"up"}
