"""The errors of kubectl: their exit codes, and sentences that name what is missing."""

import pytest

from kubectl_memcached.cluster.kubectl import failure
from kubectl_memcached.errors import ExitCode
from unit.plugin.conftest import Run, World
from unit.plugin.samples import AUTH, PROXIES, RESOURCE, memcached, proxy
from unit.plugin.test_status import secret

KLOG = 'E{:02}07 09:05:11.123456   12345 memcache.go:265] "Unhandled Error" err="couldn\'t get API group"'
NOT_FOUND = 'Error from server (NotFound): memcacheds.cache.example.com "sessions" not found'
KUBELET = "dial tcp 10.0.0.7:10250: connect: connection refused"


def forbidden(right: str) -> str:
    """What kubectl prints if a right is missing."""
    return f'Error from server (Forbidden): x is forbidden: User "jo" cannot {right}'


CASES = {
    NOT_FOUND: (ExitCode.MISSING, 'kubectl cannot look: memcacheds.cache.example.com "sessions" not found'),
    'error: the server doesn\'t have a resource type "memcacheds"': (
        ExitCode.MISSING,
        "This cluster has no Memcacheds: the operator is not installed, or --context is another cluster.",
    ),
    'error: the server doesn\'t have a resource type "podmonitors"': (
        ExitCode.MISSING,
        "kubectl cannot look: this cluster has no resource type podmonitors",
    ),
    'error: the server doesn\'t have a resource type "memcachedproxies"': (
        ExitCode.MISSING,
        "kubectl cannot look: this cluster has no resource type memcachedproxies",
    ),
    'error: no matches for kind "Widget" in version "a/v1"': (
        ExitCode.MISSING,
        "kubectl cannot look: this cluster has no resource type Widget",
    ),
    "The connection to the server localhost:8080 was refused - did you specify the right host or port?": (
        ExitCode.CLUSTER,
        "kubectl cannot reach the cluster: The connection to the server localhost:8080 was refused",
    ),
    "Unable to connect to the server: dial tcp: lookup a.example: no such host": (
        ExitCode.CLUSTER,
        "kubectl cannot reach the cluster: Unable to connect",
    ),
    'error: context "x" does not exist': (ExitCode.CLUSTER, "kubectl cannot reach the cluster"),
    "error: You must be logged in to the server (Unauthorized)": (ExitCode.CLUSTER, "kubectl cannot reach the cluster"),
    f"error: error upgrading connection: error dialing backend: {KUBELET}": (
        ExitCode.CLUSTER,
        f"kubectl cannot look: error upgrading connection: error dialing backend: {KUBELET}",
    ),
    f'Error from server: Get "https://10.0.0.7:10250/containerLogs/shop/a/b": {KUBELET}': (
        ExitCode.CLUSTER,
        'kubectl cannot look: Error from server: Get "https',
    ),
    f"{KLOG.format(3)}\n{NOT_FOUND}": (ExitCode.MISSING, "kubectl cannot look: memcacheds.cache.example.com"),
    f"{NOT_FOUND}\n{KLOG.format(7)}": (ExitCode.MISSING, "kubectl cannot look: memcacheds.cache.example.com"),
    KLOG.format(5): (ExitCode.CLUSTER, 'kubectl cannot look: "Unhandled Error"'),
    "Warning: old\n": (ExitCode.CLUSTER, "kubectl cannot look: it gave no reason"),
    forbidden('get resource "memcacheds" in API group "cache.example.com" in the namespace "shop"'): (
        ExitCode.FORBIDDEN,
        "You may not look: you lack the permission `get` of `memcacheds.cache.example.com` in namespace shop. docs",
    ),
    forbidden('create resource "pods/portforward" in API group "" in the namespace "shop": RBAC: no such role'): (
        ExitCode.FORBIDDEN,
        "You may not look: you lack the permission `create` of `pods/portforward` in namespace shop. docs",
    ),
    forbidden('patch resource "deployments/scale" in API group "apps" in the namespace "shop"'): (
        ExitCode.FORBIDDEN,
        "You may not look: you lack the permission `patch` of `deployments.apps/scale` in namespace shop. docs",
    ),
    forbidden('get resource "nodes" in API group "" at the cluster scope'): (
        ExitCode.FORBIDDEN,
        "You may not look: you lack the permission `get` of `nodes` in the whole cluster. docs/plugin.md",
    ),
    'Error from server (Forbidden): admission webhook "a" denied the request: no changes today': (
        ExitCode.FORBIDDEN,
        'You may not look: admission webhook "a" denied the request: no changes today. docs/plugin.md',
    ),
}


@pytest.mark.parametrize("stderr", CASES)
def test_error_of_kubectl(stderr: str) -> None:
    code, start = CASES[stderr]
    error = failure(stderr, "look")
    assert (error.code, str(error)[: len(start)]) == (code, start)


@pytest.mark.parametrize("month", range(1, 13))
@pytest.mark.parametrize("severity", "IWEF")
def test_lines_of_klog_are_no_reason_in_any_month(severity: str, month: int) -> None:
    stderr = f"{NOT_FOUND}\n{KLOG.format(month).replace('E', severity, 1)}"
    assert str(failure(stderr, "look")) == str(failure(NOT_FOUND, "look"))


@pytest.mark.parametrize("words", [("status", "front"), ("find", "sessions", "k")])
def test_names_of_the_cluster_are_never_options_of_kubectl(words: tuple[str, ...], world: World, run: Run) -> None:
    world.use(memcached({"auth": AUTH}))
    world.kubectl.objects[PROXIES] = [proxy() | {"spec": {"memcachedRef": {"name": "--token=x"}}}]
    for found, stub in zip(world.pods, world.stubs, strict=True):
        stub.login = "web secret"
        for volume in found["spec"]["volumes"]:
            if "secret" in volume:
                volume["secret"]["secretName"] = "--token=x"
    result = run(*words)
    assert ("'--token=x' is not a name" in " ".join(result.output.split())) == (words[0] == "find")
    assert [call for call in world.kubectl.calls() if "--token=x" in call] == []


FORWARD = ("port-forward", "pod", "`create` of `pods/portforward`")
RIGHTS = {
    **{f"{words} {FORWARD[0]}": (words, *FORWARD) for words in ("top --once --interval=0.5", "stats", "find k")},
    **{f"{words} {FORWARD[0]}": (words, *FORWARD) for words in ("ring", "hotkeys", "flush --yes")},
    "read": ("status", "get", RESOURCE, "`get` of `memcacheds.cache.example.com`"),
    "list pods": ("find k", "get", "pods", "`list` of `pods`"),
    "read the Secret": ("find k", "get", "secret", "`get` of `secret`"),
    "change": ("pause", "patch", RESOURCE, "`patch` of `memcacheds.cache.example.com`"),
}


@pytest.mark.parametrize(("words", "verb", "resource", "permission"), RIGHTS.values(), ids=RIGHTS)
def test_missing_right_is_named(words: str, verb: str, resource: str, permission: str, world: World, run: Run) -> None:
    world.use(memcached({"auth": AUTH}))
    world.kubectl.objects["secret"] = [secret()]
    for stub in world.stubs:
        stub.login = "web secret"
    world.kubectl.forbid(verb, resource)
    if resource == "pods":
        world.kubectl.errors["get pods"] = world.kubectl.errors["get pods"].replace("cannot get", "cannot list")
    command, *rest = words.split()
    result = run(command, "sessions", *rest)
    assert (result.code, result.output) == (ExitCode.FORBIDDEN, "")
    assert f"you lack the permission {permission} in namespace shop. docs/plugin.md lists" in result.error
