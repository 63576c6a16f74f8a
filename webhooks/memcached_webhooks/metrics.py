"""Metrics, with controller-runtime's names where it has the same metric, so that dashboards for Go operators work."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector

# controller-runtime's buckets, with finer ones below: a review takes about 0.1 ms.
_BUCKETS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)


class Metrics:
    """All metrics of the process, in their own registry. The label `webhook` is the path."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        # prometheus_client adds `_total` to a counter's name.
        self.requests: Final = Counter(
            "controller_runtime_webhook_requests",
            "Admission requests by HTTP status code.",
            ["webhook", "code"],
            registry=self.registry,
        )
        self.latency: Final = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Time to process an admission request.",
            ["webhook"],
            registry=self.registry,
            buckets=_BUCKETS,
        )
        self.in_flight: Final = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Admission requests being served.",
            ["webhook"],
            registry=self.registry,
        )
        self.panics: Final = Counter(
            "controller_runtime_webhook_panics",
            "Admission requests that failed with an internal error.",
            registry=self.registry,
        )
        self.denials: Final = Counter(
            "memcached_webhooks_denials",
            "Admission requests denied, by path and reason.",
            ["webhook", "reason"],
            registry=self.registry,
        )
        self.certificate_reads: Final = Counter(
            "certwatcher_read_certificate", "Certificate reads.", registry=self.registry
        )
        self.certificate_errors: Final = Counter(
            "certwatcher_read_certificate_errors",
            "Certificate reads that failed; the pair in use is kept.",
            registry=self.registry,
        )
        self.certificate_readable: Final = Gauge(
            "memcached_webhooks_certificate_last_read_successful",
            "Whether the current files could be loaded: 1 or 0.",
            registry=self.registry,
        )
        self.certificate_expiry: Final = Gauge(
            "memcached_webhooks_certificate_expiry_timestamp_seconds",
            "Expiry of the serving certificate in Unix time; 0 before the first certificate is loaded.",
            registry=self.registry,
        )
