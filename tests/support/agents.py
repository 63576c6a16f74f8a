"""The agents of pods, as Prometheus and users see them."""

import re
import ssl
import urllib.error
from urllib.request import urlopen

from support.kube import Object, must_get
from support.waiting import REQUEST

METRICS_PORT = 9150


def metrics(pod: Object, path: str = "/metrics", tls: ssl.SSLContext | None = None) -> str:
    """The response of the agent of a pod. `tls`: a context for HTTPS; None for HTTP.

    Fails if the agent does not respond: only pods with a warm gate or slots wait for it, so tests may have to.
    """
    url = f"{'http' if tls is None else 'https'}://{pod['status']['podIP']}:{METRICS_PORT}{path}"
    try:
        with urlopen(url, timeout=REQUEST, context=tls) as response:  # noqa: S310 - one of these two schemes
            return response.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except urllib.error.URLError as error:
        raise AssertionError(f"{url}: {error.reason}") from None


def healthz(pod: Object) -> str:
    """The problems that the agent of a pod names, or `ok`."""
    return metrics(pod, "/healthz")


def value(pod: Object, series: str) -> float:
    """The value of a metric."""
    (found,) = re.findall(rf"^{re.escape(series)} (.*)$", metrics(pod), re.MULTILINE)
    return float(found)


def restarts(pod: Object) -> dict[str, int]:
    """The number of restarts of each container of a pod, as of now."""
    found = must_get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
    return {each["name"]: each["restartCount"] for each in found["status"]["containerStatuses"]}
