"""The dashboard of the operator: the controller and admission."""

from typing import Final

from dashboards.grafana import BAD, CERTIFICATE, GOOD, PROBLEMS, WARNING, Dashboard, Rows, Unit, Variable, graph, stat
from dashboards.selectors import OPERATOR, SELECTED, rate, summed

ZERO: Final = f"0 * sum(process_start_time_seconds{{{SELECTED}}})"
"""0 while Prometheus has metrics of the operator: a counter with labels does not exist before its first increase."""
ONE: Final = ((None, BAD), (1, GOOD), (2, BAD))


def or_zero(expr: str) -> str:
    """The value of an expression, or 0 if it has none, but no value without metrics of the operator."""
    return f"{expr} or {ZERO}"


def short_pod(vector: str) -> str:
    """A vector whose label `pod` has only what differs: `controller h8k2x`."""
    pattern = ".*memcached-operator-(controller|webhook)(?:-manager)?-.*-(.+)"
    return f'label_replace({vector}, "pod", "$1 $2", "pod", "{pattern}")'


def short_path(vector: str) -> str:
    """A vector whose label `webhook` is `validate memcached` instead of a path as in webhooks' configurations."""
    return f'label_replace({vector}, "webhook", "$1 $2", "webhook", "/(mutate|validate)-.+-(.+)")'


def quantiles(metric: str, label: str) -> dict[str, str]:
    """The queries for the median and the 99th percentile of a histogram, by a label.

    Without observations, there is no series.
    """
    rates = rate(f"{metric}_bucket")
    buckets = f"sum by (le, {label}) ({short_path(rates) if label == 'webhook' else rates})"
    return {
        f"{{{{{label}}}}} {name}": f"histogram_quantile({quantile}, {buckets}) >= 0"
        for quantile, name in ((0.5, "median"), (0.99, "99 %"))
    }


ROWS: Final[Rows] = {
    "Is the operator fine?": [
        stat(
            "Leaders",
            "Controllers that reconcile. 0: changes have no effect; caches keep running. Look at the log of both pods "
            "and the Lease `memcached-operator`.",
            f"sum(leader_election_master_status{{{SELECTED}}})",
            thresholds=ONE,
        ),
        stat(
            "Queue",
            "Objects that wait for the controller. A depth that does not decrease: see the errors below.",
            f"sum(workqueue_depth{{{SELECTED}}})",
        ),
        stat(
            "Reconcile errors",
            "Reconciliations that ended in an error and are repeated. The log of the leader and the condition "
            "`Degraded` of the object name the reason.",
            or_zero(f"sum({rate('controller_runtime_reconcile_errors_total')})"),
            Unit.EVENTS,
            thresholds=((None, GOOD), (0.001, WARNING)),
        ),
        stat(
            "Defects, last day",
            "Unexpected errors of the controller and of admission during the last day. Each is a defect: please "
            "report it.",
            or_zero(
                f'sum(increase({{__name__=~"controller_runtime_(reconcile|webhook)_panics_total",{SELECTED}}}[1d]))'
            ),
            thresholds=PROBLEMS,
        ),
        stat(
            "Rejections",
            "Admission requests that were denied because the object is invalid. The client gets the reason.",
            or_zero(f"sum({rate('memcached_webhooks_denials_total')})"),
            Unit.EVENTS,
        ),
        stat(
            "Certificate expires in",
            "Time until the first certificate of admission expires. Afterwards the API server denies changes of "
            "Memcached and AppService objects. The leader renews a certificate 30 days before.",
            f"min(memcached_webhooks_certificate_expiry_timestamp_seconds{{{SELECTED}}}) - time()",
            Unit.SECONDS,
            thresholds=CERTIFICATE,
        ),
    ],
    "Saturation": [
        graph("Queue", "Objects that wait, by kind.", summed(f"workqueue_depth{{{SELECTED}}}", "name"), width=6),
        graph(
            "Memory",
            "Resident memory of each process.",
            summed(short_pod(f"process_resident_memory_bytes{{{SELECTED}}}"), "pod"),
            Unit.BYTES,
            width=6,
        ),
        graph(
            "CPU",
            "Processors that each process uses. Both are processes of one thread: at 1, requests wait.",
            summed(short_pod(rate("process_cpu_seconds_total")), "pod"),
            Unit.PROCESSORS,
            width=6,
        ),
        graph(
            "Admission requests in progress",
            "Admission requests that are being served, by webhook.",
            summed(short_path(f"controller_runtime_webhook_requests_in_flight{{{SELECTED}}}"), "webhook"),
            width=6,
        ),
    ],
    "Controller": [
        graph(
            "Reconciliations",
            "Reconciliations by kind and result.",
            summed(rate("controller_runtime_reconcile_total"), "controller", "result"),
            Unit.EVENTS,
        ),
        graph(
            "Duration of a reconciliation",
            "Median and 99th percentile, by kind. They contain the requests to the API server.",
            quantiles("controller_runtime_reconcile_time_seconds", "controller"),
            Unit.SECONDS,
        ),
        graph(
            "Retries",
            "Objects that were queued again after an error, by kind.",
            summed(rate("workqueue_retries_total"), "name"),
            Unit.EVENTS,
        ),
        graph(
            "Requests to the API server",
            "By HTTP status. 403: a permission is missing. 409: another client wrote at the same time. 429: the API "
            "server is busy.",
            summed(rate("rest_client_requests_total"), "code"),
            Unit.REQUESTS,
            stacked=True,
            width=12,
        ),
        graph(
            "Failed lists and watches",
            "By resource and reason; they are repeated. The controller does not reconcile a kind before it has listed "
            "it and its children.",
            summed(rate("memcached_operator_watch_retries_total"), "resource", "reason"),
            Unit.EVENTS,
            width=12,
        ),
    ],
    "Admission": [
        graph(
            "Admission requests",
            "By webhook and HTTP status. Other codes than 200 are errors of the request or of admission, not denials.",
            summed(short_path(rate("controller_runtime_webhook_requests_total")), "webhook", "code"),
            Unit.REQUESTS,
        ),
        graph(
            "Duration of an admission request",
            "Median and 99th percentile, by webhook, without the network. The API server waits 5 s at most.",
            quantiles("controller_runtime_webhook_latency_seconds", "webhook"),
            Unit.SECONDS,
        ),
        graph(
            "Rejections",
            "Denied admission requests by webhook and reason. The log of admission names the objects.",
            summed(short_path(rate("memcached_webhooks_denials_total")), "webhook", "reason"),
            Unit.EVENTS,
        ),
    ],
    "Objects": [
        graph(
            "Objects with an older image",
            "Memcached objects whose image, or agent's image, is not the default of this release. Upgrades of the "
            "operator do not change it. To update, set `spec.image` or `spec.agent.image`.",
            {
                "memcached": f"max(memcached_operator_outdated_images{{{SELECTED}}})",
                "agent": f"max(memcached_operator_outdated_agents{{{SELECTED}}})",
            },
            width=24,
        )
    ],
}
DASHBOARD: Final = Dashboard(
    "memcached-operator",
    "Memcached: operator",
    "The controller and admission of memcached-operator.",
    OPERATOR,
    [Variable("namespace", "Namespace of the operator", "memcached_operator_outdated_images", "namespace")],
    ROWS,
)
