"""Comparison of the fields of two specs."""

from collections.abc import Mapping


def changed(new: Mapping[str, object], old: Mapping[str, object]) -> list[str]:
    """The names whose values differ, in the order of `new`. Both have the same names."""
    return [name for name, value in new.items() if value != old[name]]
