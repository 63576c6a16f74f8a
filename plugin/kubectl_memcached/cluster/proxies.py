"""The MemcachedProxies of a cluster, and the rings of their pods."""

from kubectl_memcached.cluster.caches import with_pods
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import proxies
from kubectl_memcached.model.objects import PROXIES, Object, text
from kubectl_memcached.model.proxies import Ring


def listed(kubectl: Kubectl, *options: str, namespace: str = "") -> tuple[list[Object], str]:
    """The MemcachedProxies, and the reason if they cannot be read.

    Both are empty if the API server does not have the kind, as with an older operator.
    """
    try:
        return kubectl.list("list MemcachedProxies", PROXIES, *options, namespace=namespace), ""
    except PluginError as error:
        return [], "" if error.code == ExitCode.MISSING else f"Proxies are not shown. {error}"


def rings(kubectl: Kubectl, cr: Object) -> list[Ring]:
    """The rings of the pods of a MemcachedProxy, the most frequent first. Raises PluginError if it has none."""
    loaded = with_pods(kubectl, cr)
    running = {pod.name for pod in loaded.pods}
    found = proxies.rings(cr, [pod for pod in loaded.objects if text(pod, "metadata", "name") in running])
    if not found:
        reason = proxies.problem(cr) or "its pods do not exist yet"
        raise PluginError(f"MemcachedProxy {loaded.name} uses no slots: {reason}", ExitCode.POD)
    return found
