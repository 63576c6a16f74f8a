"""A stand-in for cert-manager: its kinds without schema; issues certificates and injects CA bundles.

It is for tests of pods that mount the certificate. tests/certmanager has the real cert-manager.
"""

import base64
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from memcached_operator.certificates import pki
from support import kube
from support.kube import POLL, Object, eventually, kubectl
from support.waiting import STEP

GROUP = "cert-manager.io"
INJECT = "cert-manager.io/inject-ca-from"
KINDS = {"Certificate": "certificates", "Issuer": "issuers"}
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LIFETIME = timedelta(days=90)


def definition(kind: str, plural: str) -> Object:
    """A CRD that accepts any object."""
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
    """Install cert-manager's kinds; issue and inject certificates until the block ends."""
    definitions = yaml.safe_dump_all(definition(kind, plural) for kind, plural in KINDS.items())
    ended = threading.Event()
    worker = threading.Thread(target=_issue_and_inject, args=(ended,), daemon=True)
    try:
        kubectl("apply", "-f", "-", stdin=definitions)
        for plural in KINDS.values():
            kubectl("wait", "--for=condition=Established", f"--timeout={STEP:g}s", f"crd/{plural}.{GROUP}")
        eventually(lambda: kube.read(f"/apis/{GROUP}/v1/certificates"), description="Certificates are served")
        worker.start()
        yield
    finally:
        ended.set()
        if worker.ident:
            worker.join(30)
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=definitions)


def _issue_and_inject(ended: threading.Event) -> None:
    done: set[str] = set()
    while not ended.wait(POLL):
        wanted = [each for each in _items(f"/apis/{GROUP}/v1/certificates") if not each["spec"].get("isCA")]
        for certificate in wanted:
            # Only once: when a namespace is deleted, its Secrets may be deleted before its Certificates.
            if certificate["metadata"]["uid"] not in done and (issuer := _issuer(certificate)):
                kubectl("create", "-f", "-", stdin=_issued(certificate, issuer))
                done.add(certificate["metadata"]["uid"])
        for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            for configuration in _items(f"{ADMISSION}/{plural}"):
                _inject(plural, configuration, wanted)


def _issuer(certificate: Object) -> Object | None:
    """The Issuer of a Certificate; None if it does not exist."""
    namespace, name = certificate["metadata"]["namespace"], certificate["spec"]["issuerRef"]["name"]
    return kube.read(f"/apis/{GROUP}/v1/namespaces/{namespace}/issuers/{name}")


def _issued(certificate: Object, issuer: Object) -> Object:
    """A new Secret for a Certificate: self-signed if the Issuer is `selfSigned`, else signed by a new CA."""
    meta, spec = certificate["metadata"], certificate["spec"]
    if "selfSigned" in issuer["spec"]:
        pair = self_signed(spec["commonName"], spec["dnsNames"])
    else:
        pair = pki.issue(spec["dnsNames"], LIFETIME, datetime.now(UTC))
    return _secret(meta["namespace"], spec["secretName"], pair)


def self_signed(name: str, dns_names: list[str]) -> pki.KeyPair:
    """The certificate that a `selfSigned` Issuer issues for OLM v1: RSA, not a CA, signed with its own key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), datetime.now(UTC)
    pem = serialization.Encoding.PEM
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number(), now, now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in dns_names]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(pem)
    )
    text = key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return pki.KeyPair(certificate, text, certificate)


def _items(path: str) -> list[Object]:
    return (kube.read(path) or {}).get("items", [])


def _secret(namespace: str, name: str, pair: pki.KeyPair) -> Object:
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {file: base64.b64encode(content).decode() for file, content in files.items()},
    }


def _inject(plural: str, configuration: Object, certificates: list[Object]) -> None:
    meta = configuration["metadata"]
    for each in certificates:
        namespace = each["metadata"]["namespace"]
        if meta.get("annotations", {}).get(INJECT) != f"{namespace}/{each['metadata']['name']}":
            continue
        secret = kube.get("secrets", namespace, each["spec"]["secretName"])
        if secret is None:
            continue
        bundle = secret["data"]["ca.crt"]
        found = [webhook["clientConfig"].get("caBundle") for webhook in configuration["webhooks"]]
        paths = [f"/webhooks/{index}/clientConfig/caBundle" for index, known in enumerate(found) if known != bundle]
        if paths:
            patch = [{"op": "add", "path": path, "value": bundle} for path in paths]
            kubectl("patch", plural, meta["name"], "--type=json", "-p", json.dumps(patch))
