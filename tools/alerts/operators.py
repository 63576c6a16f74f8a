"""The alerts of the operator itself.

Other operators have metrics with the same names, those of controller-runtime. The controller also has a metric of its
own: MANAGER. Containers of caches can have any image and report any series, but PodMonitors give all of them the label
`cache`: the expressions use only series without it.
"""

from typing import Final

from memcached_operator.kube.resource import Object
from memcached_operator.memcached.alerts.rules import Alert, Severity, alert_rule, marker, unless

GROUP: Final = "memcached-operator"
LEASE: Final = "memcached-operator"
"""The Lease of the controllers, which is the value of the label `name`."""
OWN_RULES: Final = "memcached_operator_own_rules"
"""A series, 1 where the PrometheusRule in config/prometheus is in effect: the plain file leaves out its alerts."""
OURS: Final = 'cache=""'
"""The matcher that leaves out the series of caches."""
IMAGES: Final = f"memcached_operator_outdated_images{{{OURS}}}"
PROBLEMS: Final = f"memcached_operator_problem_images{{{OURS}}}"
MANAGER: Final = f"and on (job, instance) {IMAGES}"
EXPIRY: Final = f"memcached_webhooks_certificate_expiry_timestamp_seconds{{{OURS}}}"
WEEK: Final = 7 * 86400
"""Seconds before its end in which the webhook's certificate is reported. One of 90 days is renewed 30 days before."""
ERRORS_PER_SECOND: Final = 0.01
"""Failed reconciliations per second below which nothing is reported. While nothing else changes, all reconciliations
are retries. One object that cannot be applied, for example because of a quota, is retried 2.5 times in 10 minutes."""
_ERRORS: Final = f"sum by (controller) (rate(controller_runtime_reconcile_errors_total{{{OURS}}}[10m]) {MANAGER})"
_DENIED: Final = f"memcached_webhooks_denials_total{{{OURS}}}"
_DENIALS: Final = f"sum by (webhook) (rate({_DENIED}[15m]))"
_DEPTH: Final = f"workqueue_depth{{{OURS}}}[10m]"

ALERTS: Final = (
    Alert(
        "MemcachedOperatorNoLeader",
        Severity.WARNING,
        "5m",
        f'absent(leader_election_master_status{{name="{LEASE}",{OURS}}} == 1)',
        "No controller is active",
        "Caches keep running, but changes of Memcacheds and AppServices have no effect.",
    ),
    Alert(
        "MemcachedOperatorReconcileErrors",
        Severity.WARNING,
        "15m",
        f"{_ERRORS} / sum by (controller) (rate(controller_runtime_reconcile_total{{{OURS}}}[10m]) {MANAGER}) > 0.1"
        f" and {_ERRORS} > {ERRORS_PER_SECOND}",
        "Reconciliations fail",
        "{{ $value | humanizePercentage }} of the reconciliations of {{ $labels.controller }} fail.",
    ),
    Alert(
        "MemcachedOperatorQueueNotDraining",
        Severity.WARNING,
        "15m",
        f"max by (name) (min_over_time({_DEPTH}) and deriv({_DEPTH}) >= 0 {MANAGER}) > 0",
        "The queue of the controller does not drain",
        "At least {{ $value }} objects have waited for the controller for 10 minutes.",
    ),
    Alert(
        "MemcachedOperatorWebhookCertificate",
        Severity.WARNING,
        "10m",
        f"min({EXPIRY}) - time() < {WEEK} or min(memcached_webhooks_certificate_last_read_successful{{{OURS}}}) == 0",
        "The certificate of the webhook is not renewed, or cannot be read",
        "When it expires, Memcacheds and AppServices cannot be created or changed.",
    ),
    Alert(
        "MemcachedOperatorRejectionsRising",
        Severity.WARNING,
        "15m",
        f"{_DENIALS} > 0.1 and {_DENIALS} > 3 * (sum by (webhook) (rate({_DENIED}[1d] offset 1h)) or {_DENIALS} * 0)",
        "Admission rejects more requests than on the day before",
        'The webhook {{ $labels.webhook }} rejects {{ $value | printf "%.1f" }} requests/s.',
    ),
    Alert(
        "MemcachedOperatorProblemImages",
        Severity.WARNING,
        "1h",
        f"max({PROBLEMS}) > 0",
        "Caches or proxies run a memcached with known problems",
        "{{ $value }} caches or proxies run a memcached that can crash or damage memory. Their status has details.",
    ),
    Alert(
        "MemcachedOperatorOutdatedImages",
        Severity.INFO,
        "1d",
        f"(max({IMAGES}) > 0 unless max({PROBLEMS}) > 0) or max(memcached_operator_outdated_agents{{{OURS}}}) > 0",
        "Caches or proxies do not run the images of this release",
        "{{ $value }} caches or proxies do not run the default images of the operator's release.",
    ),
)


def rules() -> list[Object]:
    """The rules of the PrometheusRule, with its marker."""
    return [marker(OWN_RULES), *(alert_rule(alert, alert.expr) for alert in ALERTS)]


def plain_rules() -> list[Object]:
    """The same rules for a plain file, silent where the PrometheusRule is in effect."""
    return [alert_rule(alert, unless(alert.expr, f"{OWN_RULES}{{{OURS}}}")) for alert in ALERTS]
