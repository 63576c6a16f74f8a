"""A manifest that has been applied has no difference to its object, as GitOps tools compare them."""

import json
import uuid
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
import yaml

from cluster.public.programs import GITOPS_FAMILY, directory, ensure_built
from integration.control_plane import ROOT
from integration.test_removals import FIRST, User, stages
from memcached_api.appservice.types import with_defaults
from memcached_operator.kube.resource import Object
from support import examples as folders
from support import kube, programs
from support.appservice import appservice
from unit.config.test_documents import PAGES, examples

__all__ = ["stages"]

# Nightly: it asks what other programs think of the objects, and builds them.
pytestmark = [pytest.mark.server, pytest.mark.nightly]

PROGRAM = "gitops-diff"
ARGO = "argocd-controller"
"""The field manager of Argo CD."""
SAMPLES = sorted((ROOT / "config/samples").glob("*_*.yaml"))
WAYS = {"client-side": (), "server-side": ("--server-side",)}
PORTS: list[list[Object]] = [
    [{"port": 80}],
    [{"port": 80, "nodePort": 30012}],
    [{"port": 80}, {"port": 81}],
    [{"port": 53}, {"port": 53, "protocol": "UDP"}, {"name": "web", "port": 80, "targetPort": 8080}],
]
"""Ports of AppServices, without what has a default."""


ANNOTATIONS = {"example.com/team": "shop"}
"""Without an annotation, kubectl's two ways to apply store different texts as the last applied configuration."""


def manifests(namespace: str) -> list[Object]:
    """All examples in the documentation and in `examples/`, all samples, and PORTS, each with a name of its own."""
    samples = (yaml.safe_load_all(path.read_text()) for path in SAMPLES)
    with_ports = [appservice(namespace, ports=ports) for ports in PORTS]
    found = chain(*map(examples, PAGES), *samples, *map(folders.memcacheds, folders.FOLDERS), with_ports)
    return [named(obj, f"{obj['metadata']['name']}-{number}", namespace) for number, obj in enumerate(found)]


def named(obj: Object, name: str, namespace: str) -> Object:
    """An object with another name, and with annotations."""
    annotations = obj["metadata"].get("annotations", {}) | ANNOTATIONS
    return obj | {"metadata": obj["metadata"] | {"name": name, "namespace": namespace, "annotations": annotations}}


@pytest.fixture
def user(kubeconfig: None) -> User:
    """kubectl in a namespace that the test creates with `stages`."""
    del kubeconfig
    return User(f"diff-{uuid.uuid4().hex[:8]}", "v1")


def stored_by_0_1_0(user: User, way: str, obj: Object) -> None:
    """Apply an AppService, whose ports then have the defaults that the webhook of release 0.1.0 wrote into them."""
    defaulted = {**obj, "spec": with_defaults(obj["spec"])}
    if way == "server-side":
        user.run("apply", "--server-side", "-f", "-", stdin=defaulted)
        return
    user.run("apply", "-f", "-", stdin=obj)
    patch = ("--field-manager=kubectl-client-side-apply", "--type=merge", "-p", json.dumps({"spec": defaulted["spec"]}))
    user.run("patch", f"appservice/{obj['metadata']['name']}", *patch)


def differences(user: User, wanted: Object) -> list[Any]:
    """The differences that Argo CD shows, for each of its three ways to compare."""
    ensure_built(GITOPS_FAMILY, [PROGRAM])
    read = ("--show-managed-fields", "-o", "json", "-f", "-")
    dry_run = ("--server-side", "--force-conflicts", f"--field-manager={ARGO}", "--dry-run=server")
    applied = user.run("apply", *dry_run, *read, stdin=wanted)[0]
    stored = user.run("get", *read, stdin=wanted)[0]
    items = (wanted["items"], *(json.loads(each)["items"] for each in (stored, applied)))
    objects = [dict(zip(("manifest", "live", "applied"), each, strict=True)) for each in zip(*items, strict=True)]
    schema = json.loads(kube.kubectl("get", "--raw", "/openapi/v2").stdout)
    given = json.dumps({"manager": ARGO, "schema": schema, "objects": objects})
    command = [directory(GITOPS_FAMILY) / PROGRAM]
    found = json.loads(programs.output(command, stdin=given))
    assert len(found) == len(objects)
    return [each for each in found if any(each.values())]


@pytest.mark.parametrize("way", WAYS)
def test_applied_examples_and_samples_have_no_difference(stages: Callable[..., None], user: User, way: str) -> None:
    """Nor does another apply change anything, or conflict with what admission has set. Also after an upgrade."""
    options = WAYS[way]
    wanted: Object = {"apiVersion": "v1", "kind": "List", "items": manifests(user.namespace)}
    assert len(wanted["items"]) > 20

    def earlier() -> None:
        for obj in wanted["items"][-len(PORTS) :]:
            stored_by_0_1_0(user, way, obj)

    def steps() -> None:
        user.run("apply", *options, "-f", "-", stdin=wanted)
        again = user.run("apply", *options, "-f", "-", stdin=wanted)[0].splitlines()
        if way == "client-side":
            assert [line for line in again if not line.endswith(" unchanged")] == []
        before = user.run("get", "memcacheds,appservices", "-o", "yaml")
        for diff_options in WAYS.values():
            done = kube.kubectl("-n", user.namespace, "diff", *diff_options, "-f", "-", stdin=wanted, check=False)
            assert (done.returncode, done.stdout) == (0, ""), (diff_options, done.stdout, done.stderr)
        assert differences(user, wanted) == []
        user.run("apply", *options, "-f", "-", stdin=wanted)
        assert user.run("get", "memcacheds,appservices", "-o", "yaml") == before

    stages((None, earlier), (FIRST, steps))
