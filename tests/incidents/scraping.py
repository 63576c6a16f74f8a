"""Debian's Prometheus with the alerts of a cache and the labels that a PodMonitor adds."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from memcached_operator.memcached.alerts import caches
from support.agents import targets
from support.kube import Object
from support.prometheus import Prometheus, server

SECOND: Final = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}}


def rules(namespace: str, name: str, *, delay: bool = True) -> Object:
    """The file with the rules of a cache. Without `delay`, alerts fire as soon as their expressions have a result."""
    found = caches.rules_of(namespace, name)
    kept = found if delay else [{key: value for key, value in rule.items() if key != "for"} for rule in found]
    return {"groups": [{"name": caches.GROUP, "rules": kept}]}


@contextmanager
def scraping(pods: list[Object], files: Mapping[str, str]) -> Generator[Prometheus]:
    """Prometheus during the block: Debian builds it without the discovery of pods, so the pods are given."""
    with server([{"job_name": "memcached", "static_configs": targets(pods)}], SECOND, files) as found:
        yield found
