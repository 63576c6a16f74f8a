"""A manifest that has been applied has no difference to its object, as GitOps tools compare them."""

import uuid
from collections.abc import Callable
from itertools import chain

import pytest
import yaml

from integration.control_plane import ROOT
from integration.test_removals import FIRST, User, stages
from memcached_operator.kube.resource import Object
from support import examples as folders
from support import kube
from unit.config.test_documents import PAGES, examples

__all__ = ["stages"]

pytestmark = pytest.mark.server

SAMPLES = sorted((ROOT / "config/samples").glob("*_*.yaml"))
WAYS = {"client-side": (), "server-side": ("--server-side",)}


def manifests(namespace: str) -> list[Object]:
    """All examples in the documentation and in `examples/`, and all samples, each with a name of its own."""
    samples = (yaml.safe_load_all(path.read_text()) for path in SAMPLES)
    found = chain(*map(examples, PAGES), *samples, *map(folders.memcacheds, folders.FOLDERS))
    return [
        {**obj, "metadata": {**obj["metadata"], "name": f"{obj['metadata']['name']}-{number}", "namespace": namespace}}
        for number, obj in enumerate(found)
    ]


@pytest.fixture
def user(kubeconfig: None) -> User:
    """kubectl in a namespace that the test creates with `stages`."""
    del kubeconfig
    return User(f"diff-{uuid.uuid4().hex[:8]}", "v1")


@pytest.mark.parametrize("way", WAYS)
def test_applied_examples_and_samples_have_no_difference(stages: Callable[..., None], user: User, way: str) -> None:
    options = WAYS[way]
    wanted: Object = {"apiVersion": "v1", "kind": "List", "items": manifests(user.namespace)}
    assert len(wanted["items"]) > 20

    def steps() -> None:
        user.run("apply", *options, "-f", "-", stdin=wanted)
        done = kube.kubectl("-n", user.namespace, "diff", *options, "-f", "-", stdin=wanted, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr

    stages((FIRST, steps))
