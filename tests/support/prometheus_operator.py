"""The real prometheus-operator as a process on this machine, and the configuration that it writes."""

import gzip
import json
import subprocess
from base64 import b64decode
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final
from urllib.request import urlopen

import yaml

from cluster.public.programs import GO_ENV, PROMETHEUS_OPERATOR_FAMILY, directory, ensure_built, ensure_go
from cluster.shell import run
from support import programs
from support.kube import eventually
from support.ports import free_port
from support.prometheus import Prometheus, program, server
from support.waiting import READY, REQUEST

Object = dict[str, Any]
MODULE: Final = "github.com/prometheus-operator/prometheus-operator"
CONFIGURATION: Final = "prometheus.yaml.gz"


class _Loader(yaml.SafeLoader):
    """Reads `=` as text. In YAML 1.1 it has a type of its own, and PyYAML has no value for it."""


_Loader.add_constructor("tag:yaml.org,2002:value", yaml.SafeLoader.construct_scalar)


def crds() -> list[Object]:
    """Its CRDs, which are in its Go module."""
    words = [ensure_go(), "mod", "download", "-json", MODULE]
    folder = Path(json.loads(run(words, env=GO_ENV, cwd=PROMETHEUS_OPERATOR_FAMILY.module))["Dir"])
    paths = sorted((folder / "example/prometheus-operator-crd").glob("*.yaml"))
    return [yaml.load(path.read_text(), _Loader) for path in paths]  # noqa: S506 - derived from SafeLoader


@contextmanager
def prometheus_operator(kubectl: str, kubeconfig: Path) -> Generator[None]:
    """Run it during the block. It knows no kubeconfig, so `kubectl proxy` is between it and the API server."""
    ensure_built(PROMETHEUS_OPERATOR_FAMILY, ["operator"])
    api = free_port()
    proxy = [kubectl, f"--kubeconfig={kubeconfig}", "proxy", f"--port={api}"]
    words = [
        str(directory(PROMETHEUS_OPERATOR_FAMILY) / "operator"),
        f"--apiserver=http://127.0.0.1:{api}",
        f"--web.listen-address=127.0.0.1:{free_port()}",
        "--kubelet-endpoints=false",
    ]
    with ExitStack() as stack:
        stack.enter_context(_process(proxy))
        # The operator ends if nothing listens yet.
        eventually(lambda: _is_ready(api), READY, "the proxy answers")
        stack.enter_context(_process(words))
        yield


@contextmanager
def _process(words: list[str]) -> Generator[None]:
    """Run a program during the block. Its log is in the error if the program has ended before."""
    with TemporaryFile() as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            code = process.poll()
            process.kill()
            log.seek(0)
            assert code is None, f"{words[0]} has ended with {code}: {log.read()[-2000:].decode()}"


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=REQUEST) as response:
            return response.status == HTTPStatus.OK
    except OSError:
        return False


def prometheus_object(namespace: str) -> Object:
    """A Prometheus that selects every object of every namespace, for the version of the program on this machine."""
    words = [program(), "--version"]
    version = programs.output(words).split()[2].partition("+")[0]
    objects = ("podMonitor", "serviceMonitor", "rule")
    selectors: Object = {f"{each}{scope}Selector": {} for each in objects for scope in ("", "Namespace")}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Prometheus",
        "metadata": {"name": "test", "namespace": namespace},
        "spec": {"version": f"v{version}", "scrapeInterval": "1s", "evaluationInterval": "1s", **selectors},
    }


def configuration(secret: Object) -> Object:
    """The configuration in the Secret that prometheus-operator writes for a Prometheus, as its sidecar completes it."""
    text = gzip.decompress(b64decode(secret["data"][CONFIGURATION])).decode()
    return yaml.safe_load(text.replace("$(SHARD)", "0"))


def job(content: Object, name: str) -> Object | None:
    """The job of this name; None if the configuration has none."""
    return next((each for each in content["scrape_configs"] if each["job_name"] == name), None)


@contextmanager
def running(content: Object, found: Object, labels: dict[str, str], address: str, rules: str) -> Generator[Prometheus]:
    """Run Prometheus with the rules and one job of a configuration.

    Debian builds it without the discovery of pods: the job gets one target with the labels that this would find.
    """
    names = ("kubernetes_sd_configs", "authorization", "bearer_token_file")
    static = {name: each for name, each in found.items() if name not in names}
    target = {"targets": [address], "labels": labels}
    more = {name: each for name, each in content.items() if name == "global"}
    with server([{**static, "static_configs": [target]}], more, {"rules.yml": rules}) as started:
        yield started


def groups(config_maps: Iterable[Object]) -> list[Object]:
    """The groups of rules in the ConfigMaps that prometheus-operator writes."""
    found: list[Object] = []
    for each in config_maps:
        for text in each.get("data", {}).values():
            content: Object = yaml.safe_load(text) or {}
            found += content.get("groups", [])
    return found
