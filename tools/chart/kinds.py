"""The choices of the value `kinds`: one for each API group."""

from typing import Final

from memcached_api.registry import KINDS

LEADING: Final = tuple({kind.group: kind for kind in reversed(KINDS)}.values())[::-1]
"""The first kind of each group, by whose name a user chooses all kinds of the group."""
