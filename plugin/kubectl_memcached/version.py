"""The version of the plugin: that of the release whose `make plugin` packed it."""

from importlib.resources import files

FILE = "VERSION"
"""A file that `make plugin` writes beside this module."""


def version() -> str:
    """The version, or `development` if it runs from the sources."""
    try:
        return files("kubectl_memcached").joinpath(FILE).read_text().strip()
    except FileNotFoundError:
        return "development"
