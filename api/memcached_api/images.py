"""The images of the pods that the operator creates for Memcacheds."""

from typing import Final, NamedTuple

DEFAULT_IMAGE: Final = "docker.io/library/memcached:1.6.45"  # unless RELATED_IMAGE_MEMCACHED names another

DEFAULT_AGENT_IMAGE: Final = "localhost/memcached-operator/memcached-operator-agent:0.1.0"
"""That of the operator's release, as in config/base, unless RELATED_IMAGE_AGENT names another."""


class Images(NamedTuple):
    """The images of the pods of a Memcached. That of the agent is used only in pods that have one."""

    memcached: str = DEFAULT_IMAGE
    agent: str = DEFAULT_AGENT_IMAGE
