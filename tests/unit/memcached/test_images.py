"""The metrics about images."""

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from memcached_api.images import Images
from memcached_operator import metrics
from memcached_operator.app import image_gauges
from memcached_operator.memcached.images import image_counts
from memcached_operator.memcachedproxy import images as of_proxies
from memcached_operator.parts.images import ImageCounts, total
from unit.builders import memcached as cr_of
from unit.builders import memcachedproxy

DEFAULTS = Images("example.com/memcached:2", "example.com/agent:2")


def test_everything_is_counted() -> None:
    old = "memcached:1.6.38"
    objects = [
        (cr_of(), ""),
        (cr_of(image="example.com/memcached:1"), "example.com/memcached:1"),
        (cr_of(image="example.com/memcached:1", monitoring={}, agent={"image": "example.com/agent:1"}), old),
        (cr_of(monitoring={}, agent={"image": "example.com/agent:1"}), "memcached:1.6.45"),
    ]
    counts = [image_counts(*each, DEFAULTS) for each in objects]
    assert total([*counts, ()]) == ImageCounts(outdated=2, problems=1, outdated_agents=2)
    assert total([()]) == (0, 0, 0)


@pytest.mark.parametrize("spec", ["text", 3, [1], {"agent": ["x"], "monitoring": {}}, {"agent": 1, "image": 2}])
def test_spec_that_another_schema_has_admitted_is_counted_without_an_error(spec: object) -> None:
    for count in (image_counts, of_proxies.image_counts):
        assert count({"spec": spec}, "memcached:1.6.45", DEFAULTS)[1:] == (0, 0)


def test_proxies_are_counted_like_caches() -> None:
    agent = {"image": "example.com/agent:1"}
    objects = [
        (memcachedproxy(image="example.com/memcached:1", agent=agent), ""),
        (memcachedproxy(tls={"secretName": "a"}, agent=agent), "memcached:1.6.45"),
        (memcachedproxy("front"), "memcached:1.6.44"),
    ]
    counts = [of_proxies.image_counts(*each, DEFAULTS) for each in objects]
    assert total(counts) == ImageCounts(outdated=1, problems=1, outdated_agents=1)


def test_a_scrape_counts_once() -> None:
    calls = list[int]()

    def count() -> dict[str, int]:
        calls.append(1)
        return {"a": 3, "b": 0}

    gauges, registry = metrics.CountedTogether({"a": "The first.", "b": "The second."}), CollectorRegistry()
    registry.register(gauges)
    empty = generate_latest(registry)
    gauges.count = count
    assert registry.get_sample_value("a") == 3
    calls.clear()
    assert generate_latest(registry) == empty.replace(b"a 0.0", b"a 3.0")
    assert len(calls) == 1


def test_counted_gauges_look_like_single_ones() -> None:
    counted, single = CollectorRegistry(), CollectorRegistry()
    counted.register(metrics.CountedTogether({"a": "The first."}))
    Gauge("a", "The first.", registry=single)
    assert generate_latest(counted) == generate_latest(single)
    with pytest.raises(ValueError, match="Duplicated"):
        Gauge("a", "The same name.", registry=counted)


def test_each_count_has_its_gauge() -> None:
    values = image_gauges(ImageCounts(outdated=1, problems=2, outdated_agents=3))
    assert values.keys() == metrics.IMAGES.count().keys()
    assert [values[name] for name in (metrics.OUTDATED_IMAGES, metrics.PROBLEM_IMAGES)] == [1, 2]
    assert values[metrics.OUTDATED_AGENTS] == 3
