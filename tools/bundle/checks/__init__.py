"""What OLM or a catalogue would refuse or warn of, and what would work otherwise than told: pure functions.

OLM's own validators do not look at webhook definitions, at permissions or at what our code does: these checks do. That
`make bundle` changes nothing is checked by `generate --check`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from bundle.checks.kinds import conversion, descriptors, examples, owned
from bundle.checks.layout import labels, objects, scorecard, size
from bundle.checks.pods import images, permissions, pods
from bundle.checks.presentation import presentation
from bundle.checks.subject import Fault, Subject
from bundle.checks.versions import graph, versions
from bundle.checks.webhooks import webhooks

CHECKS: Final[tuple[Callable[[Subject], Iterator[Fault]], ...]] = (
    labels, objects, versions, owned, examples, descriptors, webhooks, pods, permissions, images, presentation, size,
    graph, conversion, scorecard,
)  # fmt: skip


def faults(files: Mapping[str, str], config: Mapping[str, str]) -> list[Fault]:
    """All that is wrong with a bundle and its catalogue, given as path → text; `config` is the tree they are made from.

    Raises BundleError for what cannot be read at all.
    """
    subject = Subject(files, config)
    return [fault for check in CHECKS for fault in check(subject)]
