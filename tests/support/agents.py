"""The agents of pods, as Prometheus and users see them."""

import re
import ssl
import urllib.error
from urllib.request import urlopen

from support.kube import Object, must_get
from support.waiting import REQUEST

METRICS_PORT = 9150
PROBES_PORT = 9151


def metrics(pod: Object, path: str = "/metrics", tls: ssl.SSLContext | None = None) -> str:
    """The response of the agent of a pod. `tls`: a context for HTTPS; None for HTTP.

    Fails if the agent does not respond: only pods with a warm gate or slots wait for it, so tests may have to.
    """
    return _response(f"{'http' if tls is None else 'https'}://{pod['status']['podIP']}:{METRICS_PORT}{path}", tls)


def targets(pods: list[Object]) -> list[Object]:
    """Targets of Prometheus for the agents of pods that have an address, with the labels that a PodMonitor adds."""
    return [
        {
            "targets": [f"{pod['status']['podIP']}:{METRICS_PORT}"],
            "labels": {
                "namespace": pod["metadata"]["namespace"],
                "pod": pod["metadata"]["name"],
                "container": "agent",
                "cache": pod["metadata"]["labels"]["app.kubernetes.io/instance"],
            },
        }
        for pod in pods
        if pod["status"].get("podIP")
    ]


def healthz(pod: Object) -> str:
    """The problems that the agent of a pod names, or `ok`."""
    return metrics(pod, "/healthz")


def readyz(pod: Object) -> str:
    """Why the agent of a pod says that it is not ready, or `ok`. Fails if it does not respond."""
    return _response(f"http://{pod['status']['podIP']}:{PROBES_PORT}/readyz")


def _response(url: str, tls: ssl.SSLContext | None = None) -> str:
    try:
        with urlopen(url, timeout=REQUEST, context=tls) as response:  # noqa: S310 - http or https
            return response.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except urllib.error.URLError as error:
        raise AssertionError(f"{url}: {error.reason}") from None


def value(pod: Object, series: str) -> float:
    """The value of a metric."""
    (found,) = re.findall(rf"^{re.escape(series)} (.*)$", metrics(pod), re.MULTILINE)
    return float(found)


def restarts(pod: Object) -> dict[str, int]:
    """The number of restarts of each container of a pod, as of now."""
    found = must_get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
    return {each["name"]: each["restartCount"] for each in found["status"]["containerStatuses"]}
