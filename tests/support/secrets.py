"""Secrets with certificates and passwords, as cert-manager and users write them."""

from base64 import b64encode

from support.kube import Object, kubectl
from support.pki import CA, Pair


def sync(pods: list[Object]) -> None:
    """Let the kubelet update the volumes of pods now, not within a minute: it does so when a pod changes."""
    for pod in pods:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        stamp = f"example.com/sync={pod['metadata']['resourceVersion']}"
        kubectl("annotate", "pod", name, "-n", namespace, "--overwrite", stamp)


def secret(namespace: str, name: str, kind: str = "Opaque", /, **files: bytes) -> Object:
    """A Secret. `files`: its keys with `_` instead of a dot."""
    data = {key.replace("_", "."): b64encode(content).decode() for key, content in files.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": kind,
        "data": data,
    }


def tls_secret(namespace: str, name: str, pair: Pair, ca: CA | bytes) -> Object:
    """A Secret of type kubernetes.io/tls with `ca.crt`. `ca`: one authority, or several as PEM."""
    pem = ca if isinstance(ca, bytes) else ca.pem
    return secret(namespace, name, "kubernetes.io/tls", tls_crt=pair.cert, tls_key=pair.key, ca_crt=pem)


def users_secret(namespace: str, name: str, *lines: str) -> Object:
    """A Secret with users."""
    return secret(namespace, name, users="".join(f"{each}\n" for each in lines).encode())


def names_of(namespace: str, name: str, domain: str = "cluster.local") -> list[str]:
    """The DNS names that a certificate of a Memcached needs: of its Service and of its slots."""
    host = f"{name}.{namespace}.svc.{domain}"
    return [host, f"*.{host}"]
