"""The dashboard of the operator: the controller and admission."""

from typing import Final

from dashboards.model import (
    CERTIFICATE,
    PROBLEMS,
    Color,
    Dashboard,
    Graph,
    Query,
    Row,
    Stat,
    Thresholds,
    Unit,
    Variable,
)
from dashboards.selectors import OPERATOR, SELECTED, rate

ZERO: Final = f"0 * sum(process_start_time_seconds{{{SELECTED}}})"
"""0 while Prometheus has metrics of the operator: a counter with labels does not exist before its first increase."""
ONE: Final = Thresholds(Color.BAD, ((1, Color.GOOD), (2, Color.BAD)))


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


def quantiles(metric: str, label: str) -> list[Query]:
    """The queries for the median and the 99th percentile of a histogram, by a label.

    Without observations, there is no series.
    """
    rates = rate(f"{metric}_bucket")
    buckets = f"sum by (le, {label}) ({short_path(rates) if label == 'webhook' else rates})"
    return [
        Query(f"histogram_quantile({quantile}, {buckets}) >= 0", f"{{{{{label}}}}} {name}")
        for quantile, name in ((0.5, "median"), (0.99, "99 %"))
    ]


HEALTH: Final = Row(
    "Is the operator fine?",
    [
        Stat(
            "Leaders",
            "Controllers that reconcile. 0: changes have no effect; caches keep running. Look at the log of both pods "
            "and the Lease `memcached-operator`.",
            expr=f"sum(leader_election_master_status{{{SELECTED}}})",
            thresholds=ONE,
        ),
        Stat(
            "Queue",
            "Objects that wait for the controller. A depth that does not decrease: see the errors below.",
            expr=f"sum(workqueue_depth{{{SELECTED}}})",
        ),
        Stat(
            "Reconcile errors",
            "Reconciliations that ended in an error and are repeated. The log of the leader and the condition "
            "`Degraded` of the object name the reason.",
            expr=or_zero(f"sum({rate('controller_runtime_reconcile_errors_total')})"),
            unit=Unit.EVENTS,
            thresholds=Thresholds(Color.GOOD, ((0.001, Color.WARNING),)),
        ),
        Stat(
            "Defects, last day",
            "Unexpected errors of the controller and of admission during the last day. Each is a defect: please "
            "report it.",
            expr=or_zero(
                f'sum(increase({{__name__=~"controller_runtime_(reconcile|webhook)_panics_total",{SELECTED}}}[1d]))'
            ),
            thresholds=PROBLEMS,
        ),
        Stat(
            "Rejections",
            "Admission requests that were denied because the object is invalid. The client gets the reason.",
            expr=or_zero(f"sum({rate('memcached_webhooks_denials_total')})"),
            unit=Unit.EVENTS,
        ),
        Stat(
            "Certificate expires in",
            "Time until the first certificate of admission expires. Afterwards the API server denies changes of "
            "Memcached and AppService objects. The leader renews a certificate 30 days before.",
            expr=f"min(memcached_webhooks_certificate_expiry_timestamp_seconds{{{SELECTED}}}) - time()",
            unit=Unit.SECONDS,
            thresholds=CERTIFICATE,
        ),
    ],
)
SATURATION: Final = Row(
    "Saturation",
    [
        Graph(
            "Queue",
            "Objects that wait, by kind.",
            6,
            queries=[Query(f"sum by (name) (workqueue_depth{{{SELECTED}}})", "{{name}}")],
        ),
        Graph(
            "Memory",
            "Resident memory of each process.",
            6,
            queries=[Query(f"sum by (pod) ({short_pod(f'process_resident_memory_bytes{{{SELECTED}}}')})", "{{pod}}")],
            unit=Unit.BYTES,
        ),
        Graph(
            "CPU",
            "Processors that each process uses. Both are processes of one thread: at 1, requests wait.",
            6,
            queries=[Query(f"sum by (pod) ({short_pod(rate('process_cpu_seconds_total'))})", "{{pod}}")],
            unit=Unit.PROCESSORS,
        ),
        Graph(
            "Admission requests in progress",
            "Admission requests that are being served, by webhook.",
            6,
            queries=[
                Query(
                    f"sum by (webhook) ({short_path(f'controller_runtime_webhook_requests_in_flight{{{SELECTED}}}')})",
                    "{{webhook}}",
                )
            ],
        ),
    ],
)
RECONCILES: Final = Row(
    "Controller",
    [
        Graph(
            "Reconciliations",
            "Reconciliations by kind and result.",
            queries=[
                Query(
                    f"sum by (controller, result) ({rate('controller_runtime_reconcile_total')})",
                    "{{controller}} {{result}}",
                )
            ],
            unit=Unit.EVENTS,
        ),
        Graph(
            "Duration of a reconciliation",
            "Median and 99th percentile, by kind. They contain the requests to the API server.",
            queries=quantiles("controller_runtime_reconcile_time_seconds", "controller"),
            unit=Unit.SECONDS,
        ),
        Graph(
            "Retries",
            "Objects that were queued again after an error, by kind.",
            queries=[Query(f"sum by (name) ({rate('workqueue_retries_total')})", "{{name}}")],
            unit=Unit.EVENTS,
        ),
        Graph(
            "Requests to the API server",
            "By HTTP status. 403: a permission is missing. 409: another client wrote at the same time. 429: the API "
            "server is busy.",
            12,
            queries=[Query(f"sum by (code) ({rate('rest_client_requests_total')})", "{{code}}")],
            unit=Unit.REQUESTS,
            stacked=True,
        ),
        Graph(
            "Failed lists and watches",
            "By resource and reason; they are repeated. The controller does not reconcile a kind before it has listed "
            "it and its children.",
            12,
            queries=[
                Query(
                    f"sum by (resource, reason) ({rate('memcached_operator_watch_retries_total')})",
                    "{{resource}} {{reason}}",
                )
            ],
            unit=Unit.EVENTS,
        ),
    ],
)
REVIEWS: Final = Row(
    "Admission",
    [
        Graph(
            "Admission requests",
            "By webhook and HTTP status. Other codes than 200 are errors of the request or of admission, not denials.",
            queries=[
                Query(
                    f"sum by (webhook, code) ({short_path(rate('controller_runtime_webhook_requests_total'))})",
                    "{{webhook}} {{code}}",
                )
            ],
            unit=Unit.REQUESTS,
        ),
        Graph(
            "Duration of an admission request",
            "Median and 99th percentile, by webhook, without the network. The API server waits 5 s at most.",
            queries=quantiles("controller_runtime_webhook_latency_seconds", "webhook"),
            unit=Unit.SECONDS,
        ),
        Graph(
            "Rejections",
            "Denied admission requests by webhook and reason. The log of admission names the objects.",
            queries=[
                Query(
                    f"sum by (webhook, reason) ({short_path(rate('memcached_webhooks_denials_total'))})",
                    "{{webhook}} {{reason}}",
                )
            ],
            unit=Unit.EVENTS,
        ),
    ],
)
OBJECTS: Final = Row(
    "Objects",
    [
        Graph(
            "Objects with an older image",
            "Memcached objects whose image, or agent's image, is not the default of this release. Upgrades of the "
            "operator do not change it. To update, set `spec.image` or `spec.agent.image`.",
            24,
            queries=[
                Query(f"max(memcached_operator_outdated_images{{{SELECTED}}})", "memcached"),
                Query(f"max(memcached_operator_outdated_agents{{{SELECTED}}})", "agent"),
            ],
        ),
    ],
)  # fmt: skip
DASHBOARD: Final = Dashboard(
    "memcached-operator",
    "Memcached: operator",
    "The controller and admission of memcached-operator.",
    OPERATOR,
    [Variable("namespace", "Namespace of the operator", "memcached_operator_outdated_images", "namespace")],
    [HEALTH, SATURATION, RECONCILES, REVIEWS, OBJECTS],
)
