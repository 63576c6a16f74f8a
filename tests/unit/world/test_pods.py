import pytest

from memcached_operator.kube.resource import Object
from memcached_operator.world.pods import running_pod_names
from unit.builders import deleted, pod

NAMES: dict[str, tuple[list[Object], list[str]]] = {
    "sorted": ([pod("b"), pod("a")], ["a", "b"]),
    "without pending ones": ([pod("a"), pod("b", phase="Pending")], ["a"]),
    "without finished ones": ([pod("a", phase="Failed"), pod("b", phase="Succeeded")], []),
    "without terminating ones": ([deleted(pod("a")), pod("b")], ["b"]),
    "without those that have no phase": ([{"metadata": {"name": "a"}}], []),
}


@pytest.mark.parametrize(("pods", "names"), NAMES.values(), ids=NAMES.keys())
def test_live_names(pods: list[Object], names: list[str]) -> None:
    assert running_pod_names(pods) == names
