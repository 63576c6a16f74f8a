"""The tested versions of Kubernetes and their differences, in docs/install.md."""

from cluster.versions import KUBERNETES, SUPPORTED
from pages.blocks import table
from support.kubernetes import DIFFERENCES

HEAD = ("From", "Kubernetes", "The operator")


def blocks() -> dict[str, str]:
    """The generated blocks of docs/install.md."""
    rows = [(each.since, each.behavior, each.effect) for each in DIFFERENCES]
    return {"versions": f"{_tested()}\n\n{table([HEAD, *rows])}"}


def _tested() -> str:
    oldest, *_, newest = others = [version[1:] for version in reversed(SUPPORTED) if version != KUBERNETES]
    return (
        f"The tests with pods run with Kubernetes {KUBERNETES[1:]}. Those of the CRDs, the admission rules and the "
        f"controller run with {oldest} and {newest} before every change, and nightly "
        f"with {', '.join(others[1:-1])} as well."
    )
