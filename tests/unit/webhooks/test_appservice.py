"""Admission of an AppService, and of a kind without a module: defaults, denials and warnings.

test_memcached.py tests what all kinds have in common.
"""

from dataclasses import replace
from importlib import import_module
from typing import Any, get_type_hints

import pytest

from memcached_api.appservice.types import APPSERVICE
from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_api.registry import KINDS
from memcached_webhooks import kinds
from memcached_webhooks.admission import Admission
from memcached_webhooks.kinds import appservice, handlers
from memcached_webhooks.review import ALLOWED, GroupVersionKind, ReviewResponse

from .reviews import request

KIND = GroupVersionKind("app.example.com", "v1", "AppService")
HANDLERS = appservice.admission(Images("")).handlers()
MUTATE, VALIDATE = "/mutate-app-example-com-v1-appservice", "/validate-app-example-com-v1-appservice"
IMAGE = "docker.io/library/nginx:1.28"
REPLACES = "this change replaces 1 pod"


def obj(spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "app"}, "spec": spec}


def respond(path: str, new: Any, old: Any = None) -> ReviewResponse:
    return HANDLERS[path](request(obj(new), None if old is None else obj(old), kind=KIND, name=""))


def test_paths():
    assert set(HANDLERS) == {MUTATE, VALIDATE}


SIZE = {"op": "add", "path": "/spec/size", "value": 1}


def test_only_the_size_gets_a_default():
    """GitOps tools compare a list as a whole, so a default in one of its items would be a difference."""
    ports = [{"port": 80}, {"port": 81}]
    assert respond(MUTATE, {"image": IMAGE, "ports": ports}).patch == [SIZE]
    assert respond(MUTATE, {"image": IMAGE, "ports": ports}, {"image": IMAGE, "size": 3}).patch == [SIZE]
    assert respond(MUTATE, {"size": 2, "ports": ports}).patch == []


def test_denial_has_all_errors():
    denial = respond(VALIDATE, {"size": 0, "ports": [{"port": 0}]}).denial
    assert denial
    assert (denial.code, denial.reason) == (422, "Invalid")
    causes = [cause["field"] for cause in denial.details["causes"]]
    assert causes == ["spec.image", "spec.size", "spec.ports[0].port"]


def test_error_of_the_old_object_is_tolerated():
    spec = {"image": IMAGE, "envs": [{"name": "1"}]}
    assert respond(VALIDATE, {**spec, "size": 2}, spec).denial is None
    assert respond(VALIDATE, {**spec, "size": 0}, spec).denial


def ports(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"ports": list(entries)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, {}, []),
        (None, {"image": "nginx"}, ["spec.image nginx has no fixed version; new pods may run a different one"]),
        ({}, {}, []),
        ({"size": 3}, {"size": 1}, ["2 of 3 pods will be deleted"]),
        ({}, {"image": "nginx:2"}, [f"spec.image: {REPLACES}"]),
        ({}, {"envs": [{"name": "A"}]}, [f"spec.envs: {REPLACES}"]),
        ({}, {"resources": {"limits": {"cpu": 1}}}, [f"spec.resources: {REPLACES}"]),
        ({"resources": {"limits": {"cpu": 1}}}, {"resources": {"limits": {"cpu": "1000m"}}}, []),
        (ports({"port": 80}), ports({"port": 80, "nodePort": 30001, "name": "a"}), []),
        (ports({"port": 80}), ports({"port": 81, "targetPort": 80}), []),
        (ports({"port": 80}, {"port": 81}), ports({"port": 81}, {"port": 80}), []),
        (ports({"port": 80, "protocol": "TCP", "targetPort": 80}), ports({"port": 80}), []),
        (
            ports({"port": 80, "name": "a"}, {"port": 81, "name": "b"}, {"port": 82, "name": "y", "targetPort": "a"}),
            ports({"port": 81, "name": "a"}, {"port": 80, "name": "b"}, {"port": 82, "name": "y", "targetPort": "a"}),
            [f"spec.ports: {REPLACES}"],
        ),
        ({"envs": [{"name": "A"}]}, {"envs": [{"name": "A", "value": ""}]}, []),
        (ports({"port": 80}), ports({"port": 80, "targetPort": 81}), [f"spec.ports: {REPLACES}"]),
        (
            ports({"port": 80}),
            {},
            [
                f"spec.ports: {REPLACES}",
                "spec.ports: without ports, the Service is deleted, and its cluster IP and node ports are released",
            ],
        ),
        ({"size": "x"}, {"image": "nginx:2"}, []),
    ],
)
def test_warnings(old: Any, new: Any, expected: list[str]):
    before = None if old is None else {"image": IMAGE, **old}
    assert respond(VALIDATE, {"image": IMAGE, **new}, before).warnings == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_admission_of_a_kind_receives_the_default_images(kind: Kind[Any]):
    module = import_module(f"{kinds.__name__}.{kind.name.lower()}")
    assert [*get_type_hints(module.admission).values()] == [Images, Admission]


def test_kind_without_a_module_is_validated_and_has_no_defaults_or_warnings():
    found = handlers(Images(""), (replace(APPSERVICE, name="Other"),))
    kind = GroupVersionKind(APPSERVICE.group, "v1", "Other")

    def response(verb: str, spec: Any) -> ReviewResponse:
        return found[f"/{verb}-app-example-com-v1-other"](request(obj(spec), kind=kind, name=""))

    assert response("mutate", None) == response("validate", {"image": IMAGE}) == ALLOWED
    denial = response("validate", {"image": IMAGE, "size": 0}).denial
    assert denial
    assert denial.details["causes"][0]["field"] == "spec.size"
