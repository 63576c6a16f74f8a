"""The pure functions of the plugin, and the parts of the operator that they must match."""

from typing import Any

import pytest

from kubectl_memcached.model import units
from kubectl_memcached.model.conditions import REMEDIES, is_ready, unobserved
from kubectl_memcached.model.objects import ready_pods
from kubectl_memcached.model.pods import Endpoint, endpoint, pods
from kubectl_memcached.model.statistics.metrics import agent_metrics
from kubectl_memcached.model.statistics.rates import rates
from kubectl_memcached.model.statistics.replies import parse_stats, users
from memcached_api.conditions import MEANINGS, READY
from unit.agent.test_users_file import VALID as VALID_USERS
from unit.plugin.samples import AUTH, METRICS, TLS, memcached, pod, stats


@pytest.mark.parametrize(
    ("ready", "size", "expected"),
    [(2, 3, (2, 3)), (2, 1, (1, 1)), (2, None, (1, 1)), (None, 2, (0, 2)), (1, 0, (0, 0))],
)
def test_ready_pods_are_never_more_than_the_size(
    ready: int | None, size: int | None, expected: tuple[int, int]
) -> None:
    assert ready_pods({"status": {"readyReplicas": ready}}, size) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, Endpoint(11211)),
        ({"containerPort": 12000}, Endpoint(12000)),
        ({"identity": "Pooled", "monitoring": {}}, Endpoint(11211, metrics_port=9150)),
        ({"tls": TLS}, Endpoint(11210, metrics_port=9150)),
        ({"tls": {**TLS, "clientAuth": "Require"}, "monitoring": {"tls": {}}}, Endpoint(11210, "", 9150, https=True)),
        ({"tls": {**TLS, "port": 11212, "plaintext": "Enabled"}}, Endpoint(11210, metrics_port=9150)),
        ({"auth": AUTH}, Endpoint(11211, "sessions-users", 9150)),
        ({"cache": {"warmRestart": True, "memory": "128Mi"}, "tls": TLS}, Endpoint(11210, metrics_port=9150)),
    ],
)
def test_endpoints_of_the_pods_that_the_operator_builds(spec: dict[str, Any], expected: Endpoint) -> None:
    assert endpoint(pod(0, memcached(spec))) == expected


def test_memcached_with_tls_only_has_no_endpoint() -> None:
    container = {"name": "memcached", "command": ["memcached", "-Z", "-p", "11211"]}
    assert endpoint({"spec": {"containers": [container]}}).port is None


def test_slots_are_in_the_order_of_their_numbers() -> None:
    cr = memcached()
    assert [slot.name for slot in pods(pod(number, cr) for number in (10, 2, 0))] == [
        f"sessions-{number}" for number in (0, 2, 10)
    ]


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, "the pod is Pending"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]},
            "the pod has no node: 0/3 nodes are available",
        ),
    ],
)
def test_problem_of_a_pod_that_does_not_run(status: dict[str, Any], problem: str) -> None:
    assert [slot.problem for slot in pods([{"status": status}])] == [problem]


def test_remedies_are_those_of_the_operator() -> None:
    """None has a command, which would lack the options of the user's kubectl, except one that the plugin replaces."""
    wanted = {
        (kind, reason): meaning.action
        for kind, reasons in MEANINGS.items()
        for reason, meaning in reasons.items()
        if meaning.action and not meaning.says_remedy and kind not in (READY, "Stalled")
    }
    assert wanted == REMEDIES
    assert {key for key, text in REMEDIES.items() if "kubectl" in text} == {("Progressing", "Paused")}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"Available": "True", "Progressing": "False", "Degraded": "False", "Ready": "True"}, True),
        ({"Available": "True", "Progressing": "True", "Degraded": "False", "Ready": "True"}, True),
        ({"Available": "True", "Progressing": "False", "Degraded": "False"}, True),
        ({"Available": "True", "Progressing": "False", "Degraded": "True"}, False),
        ({}, False),
    ],
)
def test_readiness(states: dict[str, str], expected: bool) -> None:
    assert is_ready(memcached(states=states)) == expected


def test_status_of_an_earlier_generation() -> None:
    cr = memcached()
    assert unobserved(cr) == ""
    cr["metadata"]["generation"] = 2
    assert "has not observed the latest change yet" in unobserved(cr)


@pytest.mark.parametrize(
    ("value", "size", "count"),
    [
        (None, "-", "-"),
        (0, "0", "0"),
        (999, "999", "999"),
        (1023.9, "1Ki", "1k"),
        (1536, "1.5Ki", "1.5k"),
        (67108864, "64Mi", "67M"),
        (1.5 * 2**30, "1.5Gi", "1.6G"),
    ],
)
def test_amounts(value: float | None, size: str, count: str) -> None:
    assert (units.size(value), units.count(value)) == (size, count)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0, "0%"), (0.001, "<1%"), (0.5, "50%"), (0.999, ">99%"), (1, "100%")]
)
def test_shares(value: float | None, text: str) -> None:
    assert units.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0, "0s"), (59, "59s"), (3600, "1h"), (11520, "3h12m"), (450000, "5d5h")]
)
def test_durations(value: float | None, text: str) -> None:
    assert units.duration(value) == text


def test_metrics_of_the_agent() -> None:
    metrics = agent_metrics(METRICS)
    assert (round(metrics.warm or 0, 4), metrics.certificate_days(1700000000.0)) == (0.5375, 10)
    assert agent_metrics("memcached_agent_warm 1\n").warm == 1
    assert agent_metrics("memcached_agent_warm 0\n").warm == 0
    assert agent_metrics("").warm is agent_metrics("").certificate_days(0) is None


def test_counters_of_a_restarted_memcached_have_no_rate() -> None:
    before, after = (parse_stats(stats(pid=pid, touch_hits=gets)) for pid, gets in ((1, 100), (2, 300)))
    assert rates("p", before, after, 2.0).gets is None
    same = rates("p", before, {**after, "pid": "1"}, 2.0)
    assert (same.gets, same.hit_ratio) == (100, 1), "gets that also set the time to live"


EXTSTORE = {"extstore_limit_maxbytes": 2**30, "bytes": 2**28}
ON_DISK = [
    pytest.param({}, 2_000, 1_740 / 2_000, id="nothing lost"),
    pytest.param({"miss_from_extstore": 700, "get_aborted_extstore": 40}, 2_000, 0.5, id="lost"),
    pytest.param({"miss_from_extstore": 1_900}, 2_000, 0, id="lost gets of the time before"),
]


@pytest.mark.parametrize(("changed", "gets", "ratio"), ON_DISK)
def test_gets_whose_item_is_no_longer_on_the_disk_are_no_hits(changed: dict[str, int], gets: int, ratio: float) -> None:
    none = {"get_hits": 0, "get_misses": 0, "miss_from_extstore": 0, "get_aborted_extstore": 0}
    before, after = (parse_stats(stats(**{**EXTSTORE, **each})) for each in (none, changed))
    found = rates("p", before, after, 1.0)
    assert (found.gets, found.hit_ratio) == (gets, ratio)


def test_hits_after_a_reset_of_the_counters_are_not_known() -> None:
    before, after = (parse_stats(stats(**EXTSTORE, miss_from_extstore=lost, get_hits=1_000)) for lost in (500, 20))
    assert rates("p", before, after, 1.0).hit_ratio is None


def test_users_of_a_file() -> None:
    assert users(b"web:a:b\n\nbad\n:x\nold:c") == [(b"web", b"a:b"), (b"old", b"c")]


@pytest.mark.parametrize(("content", "expected"), VALID_USERS.values(), ids=VALID_USERS)
def test_users_are_those_that_the_agent_reads(content: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    assert users(content) == expected
