"""The errors with which an image is not pulled: the cause of each, and the remedy.

The texts are those of containerd, CRI-O, Docker, registries, the kubelet, and Go's packages net and crypto/x509.
Each pattern contains a space or a symbol that no name of an image contains, because the texts also name the image.
"""

import re
from dataclasses import dataclass
from typing import Final

from memcached_operator.workloads.rules import OwnContainer

RETRIES: Final = "and the kubelet tries again by itself"


@dataclass(frozen=True)
class ImageError:
    """An error. `says`: finds it in a text. `cause`: a clause; empty if the text says it.

    `remedy`: its `{image}` is the field of the image, and `{credentials}` the remedy for a registry that requires a
    login.
    """

    says: re.Pattern[str]
    cause: str
    remedy: str

    def advice(self, own: OwnContainer) -> str:
        """What a user can do, with the fields of a container."""
        return self.remedy.format(image=own.image, credentials=own.credentials)


def _error(says: str, cause: str, remedy: str) -> ImageError:
    return ImageError(re.compile(says), cause, remedy)


OTHER: Final = _error("", "", "correct {image}, or {credentials}")
"""Any other error, and an error that is not known."""

ERRORS: Final = (
    _error(r"\bdial unix ", f"the container runtime of the node does not answer, {RETRIES}", "repair the node"),
    _error(r"\bno space left on device\b", "the disk of the node is full", "free space on it"),
    _error(r"\bpull QPS exceeded\b", "the kubelet limits the number of its pulls, and tries again by itself", ""),
    _error(
        r"\btoomanyrequests: |\b429 Too Many Requests\b|\b(?:status|code):? 429\b|\bpull rate limit\b",
        f"the registry limits the number of pulls, {RETRIES}",
        "if this lasts, {credentials}, or use a copy of the image in another registry in {image}",
    ),
    # The errors of Go's packages net and net/http.
    _error(
        r"\bi/o timeout\b|\bconnection refused\b|\bno route to host\b|\bnetwork is unreachable\b|\bno such host\b|"
        r"\bTLS handshake timeout\b",
        f"the node cannot reach the registry, {RETRIES}",
        "correct {image} if its host is wrong",
    ),
    _error(
        r"\bx509: |\bserver gave HTTP response to HTTPS client\b",
        "the node does not trust the certificate of the registry, or the registry has none",
        "renew the certificate or add its authority to the nodes, or correct {image} if its host is wrong",
    ),
    _error(
        r"\bno match for platform in manifest\b|\bno matching manifest for |"
        r"\bno image found in (?:manifest list|image index) for architecture\b",
        "the image does not exist for the operating system and the architecture of the node",
        "use an image in {image} that exists for them",
    ),
    _error(
        r"\b401 Unauthorized\b|\b403 Forbidden\b|\bunauthorized: |\bdenied: |\bpull access denied\b|"
        r"\bauthorization failed\b|\bauthentication required\b|\bno basic auth credentials\b",
        "the registry does not allow the pull with the credentials of the pod",
        "{credentials}, or correct {image}",
    ),
    _error(
        r"\b50[0-9] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)\b|"
        r"\b(?:status|code):? 5[0-9][0-9]\b|\bcontext deadline exceeded\b|\bClient\.Timeout exceeded |"
        r"\btimeout awaiting response headers\b|\bconnection reset by peer\b|: (?:unexpected )?EOF\b",
        f"the registry fails or does not answer in time, {RETRIES}",
        "if this lasts, use a copy of the image in another registry in {image}",
    ),
    _error(
        r": not found\b|\b404 Not Found\b|\bmanifest unknown\b|\bname unknown\b|\bparse image name\b",
        "",
        "correct {image}",
    ),
)
"""The known errors. The first one that a text contains counts."""


def error_of(text: str) -> ImageError:
    """The error in a text of at most `failures.MAX_READ` characters."""
    return next((error for error in ERRORS if error.says.search(text)), OTHER)
