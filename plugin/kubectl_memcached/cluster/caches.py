"""A Memcached and its pods, as the API server has them."""

import base64
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import secrets
from kubectl_memcached.model.objects import APP_SERVICES, PROXIES, RESOURCE, Object, selector, text
from kubectl_memcached.model.pods import Pod, pods
from kubectl_memcached.model.statistics import replies

KINDS: Final = {
    "memcached": ("Memcached", RESOURCE),
    "memcachedproxy": ("MemcachedProxy", PROXIES),
    "mcproxy": ("MemcachedProxy", PROXIES),
}
"""The kinds and resources by what users write before a slash and a name."""


@dataclass(frozen=True)
class Cache:
    """A Memcached, or a MemcachedProxy, and its pods. `objects`: the pods as the API server has them."""

    cr: Object
    pods: list[Pod]
    objects: list[Object]

    @property
    def namespace(self) -> str:
        """The namespace of the Memcached."""
        return text(self.cr, "metadata", "namespace")

    @property
    def name(self) -> str:
        """The name of the Memcached."""
        return text(self.cr, "metadata", "name")


def get(kubectl: Kubectl, name: str) -> Object:
    """A Memcached. Raises PluginError, which names the kind if another kind of the operator has this name."""
    try:
        return memcached(kubectl, name)
    except PluginError as error:
        if error.code != ExitCode.MISSING:
            raise
        if proxy := _other(kubectl, PROXIES, name):
            cache = text(proxy, "spec", "memcachedRef", "name")
            raise PluginError(
                f"{name} is a MemcachedProxy. This command is for caches: the one of these proxies is {cache}.",
                ExitCode.MISSING,
            ) from None
        _reject_app_service(kubectl, name)
        raise


def get_with_proxies(kubectl: Kubectl, name: str) -> Object:
    """A Memcached, or the MemcachedProxy of this name without one. Raises PluginError, as `get` does.

    If MemcachedProxies cannot be read, the message has both reasons. `name`: may have a kind of KINDS, as in
    `memcachedproxy/front`. Only this kind is read then.
    """
    kind, slash, own = name.partition("/")
    if slash:
        return _of_kind(kubectl, kind, own)
    try:
        return memcached(kubectl, name)
    except PluginError as error:
        if error.code != ExitCode.MISSING:
            raise
        missing = error
    try:
        return _of_kind(kubectl, "memcachedproxy", name)
    except PluginError as error:
        _reject_app_service(kubectl, name)
        if error.code == ExitCode.MISSING:
            raise missing from None
        raise PluginError(f"{missing}. {error}", error.code) from None


def memcached(kubectl: Kubectl, name: str) -> Object:
    """A Memcached. Raises PluginError, whatever other kinds have this name."""
    return _of_kind(kubectl, "memcached", name)


def _of_kind(kubectl: Kubectl, kind: str, name: str) -> Object:
    """An object of a kind of KINDS. Raises PluginError."""
    if kind not in KINDS:
        raise PluginError(
            f"Unknown kind {kind}: use memcached/NAME or memcachedproxy/NAME, and --namespace for the namespace.",
            ExitCode.USAGE,
        )
    title, resource = KINDS[kind]
    return kubectl.get(f"read {title} {name}", resource, name)


def _reject_app_service(kubectl: Kubectl, name: str) -> None:
    """Raise PluginError if an AppService has this name."""
    if _other(kubectl, APP_SERVICES, name):
        raise PluginError(
            f"{name} is an AppService. These commands are for caches, which are Memcacheds.", ExitCode.MISSING
        ) from None


def _other(kubectl: Kubectl, resource: str, name: str) -> Object | None:
    """An object of another kind; None if there is none, or if it cannot be read."""
    try:
        return kubectl.get(f"read {name}", resource, name)
    except PluginError:
        return None


def load(kubectl: Kubectl, name: str) -> Cache:
    """A Memcached and its pods. Raises PluginError."""
    cr = get(kubectl, name)
    return with_pods(kubectl, cr)


def with_pods(kubectl: Kubectl, cr: Object) -> Cache:
    """The pods of a Memcached or a MemcachedProxy. Raises PluginError."""
    listed = kubectl.list(
        "list pods", "pods", f"--selector={selector(cr)}", namespace=text(cr, "metadata", "namespace")
    )
    return Cache(cr, pods(listed), listed)


def selected(cache: Cache, names: Sequence[str] = ()) -> list[Pod]:
    """The pods with these names, or all pods without names. Raises PluginError for another name, or without pods."""
    if not cache.pods:
        raise PluginError(f"Memcached {cache.name} has no pods.", ExitCode.POD)
    known = {pod.name: pod for pod in cache.pods}
    if other := [name for name in names if name not in known]:
        raise PluginError(f"There is no pod {other[0]}: the pods are {', '.join(known)}.", ExitCode.MISSING)
    return [known[name] for name in names] or cache.pods


class Secrets:
    """The users of caches. Each Secret is read once, when memcached requires a login."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._lock = threading.Lock()
        self._users: dict[tuple[str, str], list[tuple[bytes, bytes]]] = {}
        self._immutable: set[tuple[str, str]] = set()

    def users(self, pod: Pod) -> list[tuple[bytes, bytes]]:
        """The users and passwords of the memcached of a pod. Raises PluginError."""
        name = pod.endpoint.login_secret
        if not name:
            raise PluginError(f"memcached of {pod.name} requires a login, but its pod mounts no Secret", ExitCode.POD)
        with self._lock:
            key = (pod.namespace, name)
            if key not in self._users:
                self._users[key] = self._read(pod.namespace, name)
            return self._users[key]

    def rejection(self, pod: Pod) -> str:
        """The end of a sentence about the memcached of a pod that rejects the users of its Secret."""
        name = pod.endpoint.login_secret
        return secrets.rejection(name, immutable=(pod.namespace, name) in self._immutable)

    def _read(self, namespace: str, name: str) -> list[tuple[bytes, bytes]]:
        """Read a Secret. The message of an error contains nothing of it."""
        obj = self._kubectl.get(
            f"read Secret {name}, which has memcached's password", "secret", name, namespace=namespace
        )
        if obj.get("immutable") is True:
            self._immutable.add((namespace, name))
        try:
            content = base64.b64decode(text(obj, "data", "users"), validate=True)
        except ValueError:
            content = b""
        if not (users := replies.users(content)):
            raise PluginError(
                f"Secret {name} has no key `users` with lines of the form user:password", ExitCode.MISSING
            )
        return users
