"""What Events say about created children and new pod templates."""

from typing import Any

import pytest

from memcached_operator.engine.reporting.conditions import Condition
from memcached_operator.engine.reporting.reports import Report, of_condition, of_created, of_rollout
from memcached_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SERVICES, Key, Object

DEPLOYMENT = Key(DEPLOYMENTS, "test", "cache")
LONG = f"example.com/{'a' * 500}"

CREATED: dict[str, tuple[list[Key], str]] = {
    "one": ([DEPLOYMENT], "Created Deployment cache"),
    "by kind, in any order": (
        [Key(SERVICES, "test", "cache"), DEPLOYMENT, Key(CONFIG_MAPS, "test", "cache"), Key(SERVICES, "test", "b")],
        "Created ConfigMap cache, Deployment cache, Service cache, b",
    ),
    "many": (
        [Key(SERVICES, "test", f"cache-{n}") for n in range(9)],
        "Created Service cache-0, cache-1, cache-2 and 6 more",
    ),
}


@pytest.mark.parametrize(("keys", "message"), CREATED.values(), ids=CREATED.keys())
def test_created_children_are_one_report(keys: list[Key], message: str) -> None:
    assert of_created(keys) == Report("Created", message)


def container(name: str = "memcached", **fields: Any) -> Object:
    """A container of a pod template."""
    return {"name": name, "image": "memcached:1", **fields}


def workload(*containers: Object, metadata: Object | None = None, replicas: int = 1, **spec: Any) -> Object:
    """A workload with this pod template."""
    return {
        "spec": {
            "replicas": replicas,
            "template": {"metadata": metadata or {}, "spec": {"containers": [*containers], **spec}},
        }
    }


BASE = workload(container())
ROLLOUTS: dict[str, tuple[Object, str | None]] = {
    "the same template": (workload(container(), replicas=5), None),
    "no template": ({"spec": {"replicas": 1}}, "changed: container memcached"),
    "an image": (workload(container(image="memcached:2")), "image of memcached memcached:1 → memcached:2"),
    "an image of two": (
        workload(container(image="memcached:2"), container("agent")),
        "image of memcached memcached:1 → memcached:2; changed: container agent",
    ),
    "a long image": (workload(container(image=LONG)), f'image of memcached memcached:1 → "{LONG[:255]}…"'),
    "an image of two lines": (workload(container(image="a\nb")), 'image of memcached memcached:1 → "a\\nb"'),
    "fields": (
        workload(container(args=["-m", "64"], env=[]), metadata={"annotations": {"a": "b"}}, nodeSelector={"a": "b"}),
        "changed: annotations, memcached.args, memcached.env, nodeSelector",
    ),
    "a container": (workload(), "changed: container memcached"),
    "an init container": (workload(container(), initContainers=[container("agent")]), "changed: container agent"),
}


@pytest.mark.parametrize(("after", "changes"), ROLLOUTS.values(), ids=ROLLOUTS.keys())
def test_new_pod_template_is_one_report_that_names_its_changes(after: Object, changes: str | None) -> None:
    message = f"Deployment cache has a new pod template: {changes}"
    assert of_rollout(DEPLOYMENT, BASE, after) == (changes and Report("RolloutStarted", message))


@pytest.mark.parametrize(
    ("kind", "status", "warning"),
    [
        ("Available", "True", False),
        ("Available", "False", True),
        ("Degraded", "True", True),
        ("Progressing", "False", False),
    ],
)
def test_condition_is_a_warning_if_it_is_bad(kind: str, status: str, *, warning: bool) -> None:
    condition: Condition = {"type": kind, "status": status, "reason": "Reason", "message": "message"}
    assert of_condition(condition) == Report("Reason", "message", warning=warning)
