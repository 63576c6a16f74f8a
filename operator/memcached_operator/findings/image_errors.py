"""The errors with which an image is not pulled: the cause of each, and the remedy.

The texts are those of containerd, CRI-O, Docker, registries, the kubelet, and Go's packages net and crypto/x509.
Each pattern contains a space or a symbol that no name of an image contains, because the texts also name the image.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memcached_api.remedies import Action, Remedy, corrected
from memcached_operator.findings.rules import OwnContainer

RETRIES: Final = "and the kubelet tries again by itself"


@dataclass(frozen=True)
class ImageError:
    """An error. `says`: finds it in a text. `cause`: a clause; empty if the text says it.

    `remedy`: the remedy with the fields of a container.
    """

    says: re.Pattern[str]
    cause: str
    remedy: Callable[[OwnContainer], Remedy]


def _error(says: str, cause: str, remedy: Callable[[OwnContainer], Remedy]) -> ImageError:
    return ImageError(re.compile(says), cause, remedy)


def _always(*texts: str) -> Callable[[OwnContainer], Remedy]:
    """The remedy that changes no field."""
    return lambda _own: tuple(map(Action, texts))


def _if_lasting(action: Action) -> Action:
    """The same action for an error that can end by itself."""
    return action._replace(text=f"if this lasts, {action.text}")


def _copied(own: OwnContainer) -> Action:
    return Action(f"use a copy of the image in another registry in {own.image}", (own.image,))


def _host(own: OwnContainer) -> Action:
    return Action(f"correct {own.image} if its host or tag is wrong", (own.image,))


OTHER: Final = _error("", "", lambda own: (corrected(own.image), own.credentials))
"""Any other error, and an error that is not known."""

ERRORS: Final = (
    _error(
        r"\bdial unix ", f"the container runtime of the node does not answer, {RETRIES}", _always("repair the node")
    ),
    _error(r"\bno space left on device\b", "the disk of the node is full", _always("free space on it")),
    _error(
        r"\bpull QPS exceeded\b", "the kubelet limits the number of its pulls, and tries again by itself", _always()
    ),
    _error(
        r"\btoomanyrequests: |\b429 Too Many Requests\b|\b(?:status|code):? 429\b|\bpull rate limit\b",
        f"the registry limits the number of pulls, {RETRIES}",
        lambda own: (_if_lasting(own.credentials), _copied(own)),
    ),
    # The errors of Go's packages net and net/http.
    _error(
        r"\bi/o timeout\b|\bconnection refused\b|\bno route to host\b|\bnetwork is unreachable\b|\bno such host\b|"
        r"\bTLS handshake timeout\b",
        f"the node cannot reach the registry, {RETRIES}",
        lambda own: (_host(own),),
    ),
    _error(
        r"\bx509: |\bserver gave HTTP response to HTTPS client\b",
        "the node does not trust the certificate of the registry, or the registry has none",
        lambda own: (Action("renew the certificate or add its authority to the nodes"), _host(own)),
    ),
    _error(
        r"\bno match for platform in manifest\b|\bno matching manifest for |"
        r"\bno image found in (?:manifest list|image index) for architecture\b",
        "the image does not exist for the operating system and the architecture of the node",
        lambda own: (Action(f"use an image in {own.image} that exists for them", (own.image,)),),
    ),
    _error(
        r"\b401 Unauthorized\b|\b403 Forbidden\b|\bunauthorized: |\bdenied: |\bpull access denied\b|"
        r"\bauthorization failed\b|\bauthentication required\b|\bno basic auth credentials\b",
        "the registry does not allow the pull with the credentials of the pod",
        lambda own: (own.credentials, corrected(own.image)),
    ),
    _error(
        r"\b50[0-9] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)\b|"
        r"\b(?:status|code):? 5[0-9][0-9]\b|\bcontext deadline exceeded\b|\bClient\.Timeout exceeded |"
        r"\btimeout awaiting response headers\b|\bconnection reset by peer\b|: (?:unexpected )?EOF\b",
        f"the registry fails or does not answer in time, {RETRIES}",
        lambda own: (_if_lasting(_copied(own)),),
    ),
    _error(
        r": not found\b|\b404 Not Found\b|\bmanifest unknown\b|\bname unknown\b|\bparse image name\b",
        "",
        lambda own: (corrected(own.image),),
    ),
)
"""The known errors. The first one that a text contains counts."""


def error_of(text: str) -> ImageError:
    """The error in a text of at most `failures.MAX_READ` characters."""
    return next((error for error in ERRORS if error.says.search(text)), OTHER)
