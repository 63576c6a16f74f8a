"""The rules that repeat those of Kubernetes, at their edges: tests/integration/test_placing_edges.py compares them."""

import pytest

from memcached_api.memcached.types import validate
from support.placing_edges import EDGES, Spec


@pytest.mark.parametrize(("spec", "valid"), EDGES.values(), ids=EDGES.keys())
def test_webhook_accepts_exactly_the_valid_ones(spec: Spec, valid: bool) -> None:
    errors = [str(error) for error in validate({"metadata": {"name": "cache"}, "spec": spec})]
    assert (not errors) == valid, errors
