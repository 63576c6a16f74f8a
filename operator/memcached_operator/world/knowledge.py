"""What is known of the objects of a resource: "not listed", "not served" and "none" are different."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from memcached_operator.kube.resource import Resource

MAX_ERROR: Final = 4000
"""Characters of an error message that are kept."""

TOO_MANY_REQUESTS, INTERNAL_ERROR = 429, 500

LASTING: Final = 5
"""The failed list in a row from which on the failure lasts: after at least 15 s, with the back-off between lists. An
API server that has just started rejects lists for a moment, also with 403."""


class State(Enum):
    """Whether the objects of a resource in a namespace are known."""

    UNLISTED = "unlisted"
    """No list has been answered: any number of them may exist."""
    NOT_SERVED = "not served"
    """The API server does not serve the resource, so there are none."""
    LISTED = "listed"
    """They have been listed. What a later list cannot find out stays as it was."""


@dataclass(frozen=True)
class Knowledge:
    """What is known of the objects of a resource in a namespace, and why a list failed."""

    state: State = State.UNLISTED
    code: int | None = None
    """The response code of the last list, 0 without a response; None if it did not fail, or is not answered yet."""
    error: str = ""
    """The error message of that list, as received. At most MAX_ERROR characters."""
    lasts: bool = False
    """The last LASTING lists have failed."""
    failures: int = field(default=0, compare=False)
    """The failed lists in a row."""
    others: int = field(default=0, compare=False)
    """The last of them with another code than `code`."""

    @property
    def has_failed(self) -> bool:
        """Whether the last list failed."""
        return self.code is not None

    def failed(self, code: int, error: str) -> "Knowledge":
        """After a failed list: what has been listed before is still known. A resource that was not served may be.

        The code and the message stay the same while the code does, and while the API server is not available, whatever
        the code: a status that contains the message causes no writes. Of a failure that lasts, they change only when
        LASTING lists in a row have failed with another code: codes can alternate, such as those of several servers.
        """
        state = self.state if self.state is State.LISTED else State.UNLISTED
        failures = self.failures + 1
        lasts = failures >= LASTING
        if code == self.code or (self.code is not None and _is_unavailable(self.code) and _is_unavailable(code)):
            return replace(self, state=state, lasts=lasts, failures=failures, others=0)
        if self.lasts and self.others + 1 < LASTING:
            return replace(self, state=state, failures=failures, others=self.others + 1)
        return Knowledge(state, code, error[:MAX_ERROR], lasts, failures)

    @property
    def is_permanent(self) -> bool:
        """Whether the last list failed, and fails until something changes, such as a right."""
        return self.code is not None and not _is_unavailable(self.code)


def _is_unavailable(code: int) -> bool:
    """Whether a response code means that the API server is not available. Such codes alternate."""
    return code in (0, TOO_MANY_REQUESTS) or code >= INTERNAL_ERROR


UNLISTED: Final = Knowledge()
NOT_SERVED: Final = Knowledge(State.NOT_SERVED)
LISTED: Final = Knowledge(State.LISTED)

Known = Mapping[tuple[Resource, str | None], Knowledge]
"""What is known of each resource by watched namespace, or of all namespaces by None."""


def known_in(namespace: str, resource: Resource, known: Known) -> Knowledge:
    """What is known of a resource in a namespace. One that is not watched has no objects that anything waits for."""
    return known.get((resource, None)) or known.get((resource, namespace)) or LISTED
