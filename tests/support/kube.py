"""Access to the cluster: kubectl for the actions of users, plain reads for the results."""

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar, cast

import kubernetes

from support import programs
from support.waiting import STEP

Object = dict[str, Any]
T = TypeVar("T")

GROUPS = {
    "memcacheds": "/apis/cache.example.com/v1",
    "memcachedproxies": "/apis/cache.example.com/v1alpha1",
    "appservices": "/apis/app.example.com/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "services": "/api/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "podmonitors": "/apis/monitoring.coreos.com/v1",
    "prometheusrules": "/apis/monitoring.coreos.com/v1",
    "pods": "/api/v1",
    "events": "/api/v1",
    "secrets": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "configmaps": "/api/v1",
    "endpoints": "/api/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
}
POLL = 0.25
"""Seconds between two checks of a condition that a test waits for."""


def path_of(plural: str, namespace: str, name: str = "") -> str:
    """API path of the objects of a resource in a namespace, or of one object."""
    return f"{GROUPS[plural]}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


@cache
def _dynamic_client() -> Any:
    library = cast("Any", kubernetes)
    return library.dynamic.DynamicClient(library.config.new_client_from_config(os.environ.get("KUBECONFIG")))


def read(path: str) -> Object | None:
    """GET a path; None if it does not exist."""
    errors = cast("Any", kubernetes).client.exceptions
    try:
        return json.loads(_dynamic_client().request("get", path, serialize=False).data)
    except errors.ApiException as error:
        if error.status == 404:
            return None
        raise


def dry_run_error(plural: str, obj: Object) -> str:
    """The error of creating an object with a dry run; empty if it would be created.

    Faster than `kubectl create --dry-run=server`, for continuous probing.
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
    """Run kubectl as a user would. With `check`, a non-zero exit code fails the test with kubectl's error output."""
    text = json.dumps(stdin) if isinstance(stdin, Mapping) else stdin
    done = programs.run(["kubectl", *arguments], stdin=text)
    assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done


def apply(obj: Object, *arguments: str) -> None:
    """`kubectl apply` an object."""
    kubectl("apply", *arguments, "-f", "-", stdin=obj)


def rejection(obj: Object, *arguments: str, verb: str = "apply") -> str:
    """`kubectl apply` (or create, replace) an object that must be rejected; return kubectl's error output."""
    done = kubectl(verb, *arguments, "-f", "-", stdin=obj, check=False)
    assert done.returncode != 0, f"accepted: {done.stdout}"
    return done.stderr


def eventually(condition: Callable[[], T], timeout: float = STEP, description: str = "") -> T:
    """Wait until a condition returns a true value (and raises no AssertionError); return the value.

    Fails after `timeout` seconds with the last result."""
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            found = condition()
        except AssertionError as error:
            last = error
        else:
            if found:
                return found
            last = found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {description or condition.__name__}; last: {last}")
        time.sleep(POLL)


def consistently(condition: Callable[[], object], seconds: float, description: str = "") -> None:
    """Assert that a condition holds for `seconds`: the only case where a test waits without an expected event."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"did not hold for {seconds:g} s: {description or condition}"
        time.sleep(POLL)


@contextmanager
def watched(plural: str, namespace: str, name: str, field: str) -> Generator[Callable[[], list[str]]]:
    """Watch a field of an object until the block ends; the function returns its values so far, without repetitions."""
    words = ["kubectl", "get", plural, name, "-n", namespace, "--watch", f"--output=jsonpath={{{field}}}{{'\\n'}}"]
    with tempfile.NamedTemporaryFile() as file, subprocess.Popen(words, stdout=file) as process:

        def values() -> list[str]:
            assert process.poll() is None, "the watch has ended"
            return [value for value, _ in groupby(Path(file.name).read_text().splitlines())]

        try:
            eventually(values, description=f"the watch of {plural} {name} has begun")
            yield values
        finally:
            process.terminate()


def names(objects: Iterable[Object]) -> list[str]:
    """The sorted names of objects."""
    return sorted(obj["metadata"]["name"] for obj in objects)


def ready(pod: Object) -> bool:
    """Whether a pod is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def restart_counts(pods: Iterable[Object]) -> dict[str, int]:
    """Container restarts of each pod, by uid."""
    return {
        pod["metadata"]["uid"]: sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ()))
        for pod in pods
    }


@contextmanager
def temporary_namespace() -> Generator[str]:
    """Create a namespace; delete it afterwards, without waiting."""
    name, client = f"test-{uuid.uuid4().hex[:8]}", _dynamic_client()
    client.request("post", "/api/v1/namespaces", body={"metadata": {"name": name}}, serialize=False)
    try:
        yield name
    finally:
        with suppress(cast("Any", kubernetes).dynamic.exceptions.NotFoundError):
            client.request("delete", f"/api/v1/namespaces/{name}", serialize=False)
