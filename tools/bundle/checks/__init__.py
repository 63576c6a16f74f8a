"""What OLM or a catalogue would refuse or warn of, and what would work otherwise than told: pure functions.

OLM's own validators do not look at webhook definitions, at permissions or at what our code does: these checks do. That
`make bundle` changes nothing is checked by `generate --check`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from bundle.checks.catalogue import graph, published
from bundle.checks.kinds import descriptors, examples, generations, owned
from bundle.checks.layout import budgets, labels, objects, scorecard, size
from bundle.checks.pods import images, permissions, pods, roles
from bundle.checks.presentation import presentation
from bundle.checks.subject import Finding, Subject
from bundle.checks.versions import versions
from bundle.checks.webhooks import webhooks
from bundle.errors import BundleError

Check = Callable[[Subject], Iterator[Finding]]

BUNDLE_CHECKS: Final[tuple[Check, ...]] = (
    labels, objects, versions, owned, examples, descriptors, webhooks, pods, budgets, permissions, roles, images,
    presentation, size, generations, scorecard,
)  # fmt: skip
CHECKS: Final = (*BUNDLE_CHECKS, published, graph)


def faults(files: Mapping[str, str], config: Mapping[str, str], checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """All that is wrong with a bundle and its catalogue, given as path → text; `config` is the tree they are made from.

    Raises BundleError for what cannot be read at all.
    """
    subject = Subject(files, config)
    return [fault for check in checks for fault in found(check, subject)]


def found(check: Check, subject: Subject) -> list[Finding]:
    """What one check finds. Raises BundleError where a part that every bundle has is missing, or of another type."""
    try:
        return list(check(subject))
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise BundleError(
            f"bundle/ or catalog/ is not of the form that the check of {check.__name__} reads "
            f"({type(error).__name__}: {error}): run `make bundle catalog`"
        ) from error
