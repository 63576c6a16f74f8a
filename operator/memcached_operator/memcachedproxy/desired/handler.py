"""The route handler of memcached's proxy for a change of the number of slots: handler.lua, as pods get it."""

import re
from importlib import resources
from typing import Final

from memcached_operator.memcachedproxy import desired

_COMMENT: Final = re.compile(r"(^|\s)--( .*)?$", re.MULTILINE)
"""No string of the file contains it."""
_SPACE: Final = re.compile(r'(?<!>) ?([=~&|+*/,{}()\[\]]) ?|("[^"]*")')
"""An operator that needs no space around it, or a string, which does not change. `<const>=` would contain `>=`."""


def _shortened(text: str) -> str:
    """The same program without comments, indentation, empty lines and most spaces."""
    lines = (_SPACE.sub(r"\1\2", line.strip()) for line in _COMMENT.sub("", text).splitlines())
    return "".join(f"{line}\n" for line in lines if line)


_TEXT: Final = _shortened(resources.files(desired).joinpath("handler.lua").read_text("utf-8"))


def handler() -> str:
    """The text of the file that `proxy_config=routelib:FILE` names. It defines `route_scale`.

    It has about 9 KB: an annotation of each pod contains it.
    """
    return _TEXT
