"""Advice about the memory, from what agents predict."""

from typing import Any

import pytest

from kubectl_memcached.model.advice import of_pods
from kubectl_memcached.model.pods import Endpoint, Pod
from kubectl_memcached.model.shell import Shell
from kubectl_memcached.model.statistics.metrics import AgentMetrics, Prediction, agent_metrics
from kubectl_memcached.model.statistics.replies import parse_stats
from kubectl_memcached.model.statistics.rows import Reading, row
from kubectl_memcached.model.statistics.sizing import document, sentences
from memcached_agent.insight.curve import Point
from memcached_agent.insight.families import families
from memcached_agent.insight.window import Result
from memcached_agent.metrics.exposition import render
from unit.plugin.samples import memcached, stats

MEMORY = 256 << 20
SHELL = Shell("shop")
LIMIT = {"limit_maxbytes": MEMORY}
ZIPF = {"1": 0.71, "1.25": 0.74, "1.5": 0.77, "2": 0.83, "4": 0.94}


def reading(number: int, ratios: dict[str, float], cliffs: str = "", insight: str = "", **counters: Any) -> Reading:
    """A pod with predictions. `cliffs`: a size that is uncertain. `smaller` is the half of the memory."""
    sizes = {memory: 0.5 if memory == "smaller" else float(memory) for memory in ratios}
    predictions = {
        memory: Prediction(each, sizes[memory] * MEMORY, memory == cliffs) for memory, each in ratios.items()
    }
    pod = Pod(f"sessions-{number}", "shop", f"node-{number}", Endpoint(11211), ready=True)
    metrics = AgentMetrics(predictions=predictions, insight=insight)
    return Reading(pod, parse_stats(stats(**{**LIMIT, **counters})), metrics=metrics)


@pytest.mark.parametrize(
    ("ratios", "cliff", "expected"),
    [
        (ZIPF, "", ["2 × memory (512Mi per pod) would raise the hit ratio from 71% to 83%."]),
        (ZIPF, "2", ["4 × memory (1Gi per pod) would raise the hit ratio from 71% to 94%."]),
        ({"1": 0.5, "1.25": 0.7}, "", ["1.25 × memory (320Mi per pod) would raise the hit ratio from 50% to 70%."]),
        (
            {"1": 0.9, "1.25": 0.9, "4": 0.919},
            "",
            ["Even 4 × memory (1Gi per pod) would raise the hit ratio of 90% by less than 2 points."],
        ),
        ({"1": 0.9, "smaller": 0.896}, "", ["50% of the memory holds items that bring 0.4 points of the hit ratio."]),
        ({"1": 0.9, "smaller": 0.88}, "", []),
        ({"1": 0.9}, "", []),
        ({"2": 0.9}, "", []),
        ({}, "", []),
    ],
    ids=["half of the gain", "cliff", "short window", "enough", "too large", "in use", "present", "no ratio", "none"],
)
def test_advice_about_the_memory(ratios: dict[str, float], cliff: str, expected: list[str]) -> None:
    assert list(sentences([reading(0, ratios, cliff)])) == expected


def test_pods_count_by_their_gets() -> None:
    pods = [
        reading(0, {"1": 0.5, "2": 0.7}, get_hits=0, get_misses=0, touch_hits=1000),
        reading(1, {"1": 0.9, "2": 0.9}, get_hits=2000, get_misses=1000),
        reading(2, {"1": 0.1}, get_hits=9000),
        reading(3, {}, get_hits=9000),
    ]
    assert document(pods) == [
        {"memory": "2", "bytesPerPod": 2 * MEMORY, "hitRatio": 0.85, "presentHitRatio": 0.8, "cliff": False}
    ]
    assert document([reading(0, ZIPF, get_hits=0, get_misses=0)]) == []


def test_predictions_for_another_memory_are_left_out() -> None:
    assert list(sentences([reading(0, ZIPF, limit_maxbytes=2 * MEMORY)])) == []


def test_predictions_replace_the_advice_about_evictions() -> None:
    def found(*pods: Reading) -> list[str]:
        return [
            each
            for each in of_pods(memcached({"size": 1}), [row(pod, 0) for pod in pods], pods, SHELL)
            if "memory" in each
        ]

    assert ["evicted before they expired" in each for each in found(reading(0, {}, evictions=200))] == [True]
    assert ["would raise" in each for each in found(reading(0, ZIPF, evictions=200))] == [True]


def test_agent_that_cannot_watch_is_reported() -> None:
    pods = [reading(0, ZIPF, insight="unavailable")]
    sentence = "sessions-0: the agent cannot predict hit ratios: see `kubectl logs sessions-0 -c agent -n shop`"
    assert sentence in of_pods(memcached({"size": 1}), [row(pod, 0) for pod in pods], pods, SHELL)


def test_metrics_are_those_that_the_agent_writes() -> None:
    good = Result("good", 120.0, MEMORY, 0.71, (Point(1.25, 0.74), Point(2.0, 0.83, cliff=True)), Point(0.6, 0.706))
    metrics = agent_metrics(render(families(Result("lost", 60.0), good, 5.0)).decode())
    assert metrics.insight == "lost"
    assert metrics.predictions == {
        "1": Prediction(0.71, MEMORY),
        "1.25": Prediction(0.74, 1.25 * MEMORY),
        "2": Prediction(0.83, 2.0 * MEMORY, cliff=True),
        "smaller": Prediction(0.706, round(0.6 * MEMORY)),
    }


@pytest.mark.parametrize("value", ["x", "NaN", "+Inf"])
def test_values_that_are_no_numbers_are_left_out(value: str) -> None:
    text = "".join(
        f'memcached_agent_predicted_{name}{{memory="2"}} {value}\n' for name in ("hit_ratio", "memory_bytes")
    )
    assert agent_metrics(f"{text}memcached_agent_certificate_expiration_timestamp_seconds {value}\n") == AgentMetrics()
