"""The cluster as a test sees it: kubectl for what a user does, plain reads for what became of it."""

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar, cast

import kubernetes

Object = dict[str, Any]
T = TypeVar("T")

GROUPS = {
    "memcacheds": "/apis/cache.example.com/v1",
    "appservices": "/apis/app.example.com/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "services": "/api/v1",
    "pods": "/api/v1",
    "events": "/api/v1",
    "secrets": "/api/v1",
    "endpoints": "/api/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "leases": "/apis/coordination.k8s.io/v1",
}
POLL = 0.25
"""Seconds between two looks at what is waited for."""


def path_of(plural: str, namespace: str, name: str = "") -> str:
    """Path at the API server of a resource's objects in a namespace, or of one of them."""
    return f"{GROUPS[plural]}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


@cache
def _dynamic_client() -> Any:
    library = cast("Any", kubernetes)
    return library.dynamic.DynamicClient(library.config.new_client_from_config())


def read(path: str) -> Object | None:
    """GET a path; None where there is nothing."""
    errors = cast("Any", kubernetes).client.exceptions
    try:
        return json.loads(_dynamic_client().request("get", path, serialize=False).data)
    except errors.ApiException as error:
        if error.status == 404:
            return None
        raise


def would_be_created(plural: str, obj: Object) -> str:
    """What the API server says to an object that is only tried; empty if it would create it.

    Quicker than `kubectl create --dry-run=server`: for who asks again and again, and wants to know when.
    """
    errors = cast("Any", kubernetes).client.exceptions
    path = path_of(plural, obj["metadata"]["namespace"])
    try:
        _dynamic_client().request("post", path, body=obj, dry_run="All", serialize=False)
    except errors.ApiException as error:
        return str(error.body)
    return ""


def get(plural: str, namespace: str, name: str) -> Object | None:
    """One object, or None."""
    return read(path_of(plural, namespace, name))


def must_get(plural: str, namespace: str, name: str) -> Object:
    """One object that must exist."""
    found = get(plural, namespace, name)
    assert found is not None, f"{plural} {namespace}/{name} does not exist"
    return found


def items(plural: str, namespace: str, selector: str = "") -> list[Object]:
    """All objects of a namespace, by label selector."""
    found = read(path_of(plural, namespace) + (f"?labelSelector={selector}" if selector else ""))
    return [] if found is None else found["items"]


def kubectl(
    *arguments: str, stdin: str | Object | None = None, check: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Run kubectl as a user would. With `check`, a failure is a failed test that shows what kubectl said."""
    text = json.dumps(stdin) if isinstance(stdin, Mapping) else stdin
    done = subprocess.run(
        ["kubectl", *arguments], input=text, capture_output=True, text=True, timeout=120, check=False, env=os.environ
    )
    assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done


def apply(obj: Object, *arguments: str) -> None:
    """`kubectl apply` an object."""
    kubectl("apply", *arguments, "-f", "-", stdin=obj)


def refused(obj: Object, *arguments: str, verb: str = "apply") -> str:
    """`kubectl apply` (or create, replace) an object that must be refused; what kubectl said."""
    done = kubectl(verb, *arguments, "-f", "-", stdin=obj, check=False)
    assert done.returncode != 0, f"accepted: {done.stdout}"
    return done.stderr


def eventually(look: Callable[[], T], timeout: float = 30, what: str = "") -> T:
    """Look until it is true (or does not fail an assertion); the last look is in the message of the failure."""
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            found = look()
        except AssertionError as error:
            last = error
        else:
            if found:
                return found
            last = found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what or look.__name__}; last: {last}")
        time.sleep(POLL)


def steadily(look: Callable[[], object], seconds: float, what: str = "") -> None:
    """Something must hold the whole time: the one case where a test waits for nothing to happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert look(), f"did not stay so for {seconds:g} s: {what or look}"
        time.sleep(POLL)


def names(objects: Iterable[Object]) -> list[str]:
    """Sorted names."""
    return sorted(obj["metadata"]["name"] for obj in objects)


def ready(pod: Object) -> bool:
    """Whether a pod is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def identities(pods: Iterable[Object]) -> dict[str, int]:
    """Pods by their uids, and how often each was restarted."""
    return {
        pod["metadata"]["uid"]: sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ()))
        for pod in pods
    }


@contextmanager
def own_namespace() -> Generator[str]:
    """A namespace of one's own. Its deletion is not waited for."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
