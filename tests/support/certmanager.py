"""A stand-in for cert-manager: its kinds without their schema, and what it does for the objects of our variant."""

import base64
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import yaml

from memcached_operator.certificates import pki
from support import kube
from support.kube import POLL, Object, eventually, kubectl

GROUP = "cert-manager.io"
INJECT = "cert-manager.io/inject-ca-from"
KINDS = {"Certificate": "certificates", "Issuer": "issuers"}
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def definition(kind: str, plural: str) -> Object:
    """A CRD that takes anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


@contextmanager
def running() -> Generator[None]:
    """cert-manager's kinds exist, and certificates are issued and injected as they appear."""
    definitions = yaml.safe_dump_all(definition(kind, plural) for kind, plural in KINDS.items())
    ended = threading.Event()
    worker = threading.Thread(target=_work, args=(ended,), daemon=True)
    try:
        kubectl("apply", "-f", "-", stdin=definitions)
        for plural in KINDS.values():
            kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{plural}.{GROUP}")
        eventually(lambda: kube.read(f"/apis/{GROUP}/v1/certificates"), 15, "certificates can be asked for")
        worker.start()
        yield
    finally:
        ended.set()
        if worker.ident:
            worker.join(30)
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=definitions)


def _work(ended: threading.Event) -> None:
    issued: dict[str, pki.Pair] = {}
    while not ended.wait(POLL):
        for certificate in _items(f"/apis/{GROUP}/v1/certificates"):
            meta, spec = certificate["metadata"], certificate["spec"]
            if spec.get("isCA") or meta["uid"] in issued:
                continue
            pair = pki.issue(spec["dnsNames"], timedelta(days=90), datetime.now(UTC))
            kubectl("create", "-f", "-", stdin=_secret(meta["namespace"], spec["secretName"], pair))
            issued[meta["uid"]] = issued[f"{meta['namespace']}/{meta['name']}"] = pair
        for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            for configuration in _items(f"{ADMISSION}/{plural}"):
                _inject(plural, configuration, issued)


def _items(path: str) -> list[Object]:
    return (kube.read(path) or {}).get("items", [])


def _secret(namespace: str, name: str, pair: pki.Pair) -> Object:
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {file: base64.b64encode(content).decode() for file, content in files.items()},
    }


def _inject(plural: str, configuration: Object, issued: dict[str, pki.Pair]) -> None:
    meta = configuration["metadata"]
    pair = issued.get(meta.get("annotations", {}).get(INJECT, ""))
    if pair is None or configuration["webhooks"][0]["clientConfig"].get("caBundle"):
        return
    bundle = base64.b64encode(pair.ca).decode()
    patch = f'[{{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "{bundle}"}}]'
    kubectl("patch", plural, meta["name"], "--type=json", "-p", patch)
