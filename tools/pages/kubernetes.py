"""The tested versions of Kubernetes and their differences, in docs/install.md."""

from cluster.versions import KUBERNETES, SUPPORTED
from pages.blocks import table
from support.kubernetes import DIFFERENCES

HEAD = ("Since", "Kubernetes", "Effect on the operator")


def blocks() -> dict[str, str]:
    """The generated blocks of docs/install.md."""
    rows = [(each.since, each.behavior, each.effect) for each in DIFFERENCES]
    return {"versions": f"{_tested()}\n\n{table([HEAD, *rows])}"}


def _tested() -> str:
    oldest, *_, newest = others = [version[1:] for version in reversed(SUPPORTED) if version != KUBERNETES]
    return (
        f"The tests with pods run on Kubernetes {KUBERNETES[1:]}. The tests of the CustomResourceDefinitions, the "
        f"admission rules and the controller run on {oldest} and {newest} before every change. Every night, they also "
        f"run on {', '.join(others[1:-2])} and {others[-2]}."
    )
