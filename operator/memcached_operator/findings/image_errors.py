"""The errors with which an image is not pulled: the cause of each, and the remedy. Where a kubelet reports them.

The texts are those of containerd, CRI-O, Docker, registries, the kubelet, and Go's packages net and crypto/x509.
Each pattern contains a space or a symbol that no name of an image contains, because the texts also name the image.

Before Kubernetes 1.32, the status of a pod has no error between two attempts. The Events of the kubelet have it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from memcached_api.image import MAX_LENGTH
from memcached_api.remedies import Action, Remedy, corrected
from memcached_operator.findings.rules import OwnContainer
from memcached_operator.world.pod import Explained, Pod, by_name
from memcached_operator.world.snapshot import Message

RETRIES: Final = "and the kubelet tries again by itself"

MAX_TEXT: Final = 2048
"""Characters of a message that are read."""

_BACK_OFF: Final = re.compile(r'Back-off pulling image "[^"]*"')
"""The kubelet's whole text during its back-off, without the error (its image_manager.go, before release 1.32)."""

_FAILED: Final = re.compile(rf'Failed to pull image "([^"]{{1,{MAX_LENGTH}}})": ')
"""The start of its Event about an attempt. The error follows."""


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


def is_unexplained(waiting: Explained) -> bool:
    """Whether the state of a container that waits for its image does not say why."""
    return _BACK_OFF.fullmatch(waiting.message[:MAX_TEXT]) is not None


def unexplained(pods: Iterable[Pod]) -> list[tuple[Pod, frozenset[str]]]:
    """The pods with such containers, by name, and the images for which these wait."""
    lacking = ((pod, frozenset(_unexplained(pod))) for pod in by_name(pods) if pod.is_active)
    return [each for each in lacking if each[1]]


def subject(text: str, images: Collection[str]) -> str | None:
    """The image, of these, that an Event with this message is about; None if it is about something else."""
    found = _FAILED.match(text)
    return found[1] if found and found[1] in images else None


def reported(image: str, messages: Iterable[Message]) -> str:
    """The last error of an image in the Events about its pod; empty without one."""
    _, text = max((each for each in messages if subject(each.text, (image,))), default=(None, ""))
    return text[found.end() :] if (found := _FAILED.match(text)) else ""


def _unexplained(pod: Pod) -> Iterator[str]:
    """The images of the containers whose state does not say why they wait."""
    for spec, status in (*pod.init_containers, *pod.containers):
        if is_unexplained(status.waiting):
            yield spec.image or status.image
