"""The commands of memcached for one key, as requests that a proxy and a single server must answer in the same way.

`{k}` is the key, `{b}` the flag of a key in base64, `{c}` the CAS token of the item, or 1 without an item.
"""

from collections.abc import Iterator
from typing import Final

TOO_LARGE: Final = "x" * (2**20 + 1)
"""Bytes of a value that no server stores."""

PLAIN: Final = (
    *("get {k}", "gets {k}", "gat 100 {k}", "gats 100 {k}", "get {k} {k}", "gat 100 {k} {k}"),
    *("set {k} 3 0 2\r\nhi", "set {k} 3 100 2\r\nhi", "set {k} 3 -1 2\r\nhi", "set {k} 3 0 2 noreply\r\nhi"),
    *(
        "add {k} 3 0 2\r\nhi",
        "add {k} 3 0 2 noreply\r\nhi",
        "replace {k} 3 0 2\r\nhi",
        "replace {k} 3 0 2 noreply\r\nhi",
    ),
    *("append {k} 3 0 2\r\n77", "append {k} 3 0 2 noreply\r\n77", "prepend {k} 3 0 2\r\n77"),
    *("prepend {k} 3 0 2 noreply\r\n77", "cas {k} 3 0 2 {c}\r\nhi", "cas {k} 3 0 2 {c} noreply\r\nhi"),
    *("cas {k} 3 0 2 123456789\r\nhi", "incr {k} 7", "incr {k} 7 noreply", "decr {k} 2", "decr {k} 2 noreply"),
    *("touch {k} 100", "touch {k} 100 noreply", "touch {k} -1", "delete {k}", "delete {k} noreply"),
    f"set {{k}} 3 0 {len(TOO_LARGE)}\r\n{TOO_LARGE}",
)
"""Commands of the text protocol."""

META: Final = (
    *(f"mg {{k}}{flags}{{b}}" for flags in ("", " v", " v t f c k O1 s", " v q", " q k", " h l v", " T100 t v")),
    *(f"mg {{k}}{flags}{{b}}" for flags in (" R30 v", " T100 R200 v t", " C1 v", " u v", " k O1 q v")),
    *(f"mg {{k}}{flags}{{b}}" for flags in (" N30 v", " N30 t", " v N30 k O1 t q", " N30 E77 c v", " Nx v", " N v")),
    *(f"ms {{k}} 2{flags}{{b}}\r\nhi" for flags in ("", " T100 F5", " MS", " q", " k O2 c s", " I", " E77 c", " T-1")),
    *(f"ms {{k}} 2{flags}{{b}}\r\nhi" for flags in (" ME", " ME q", " O2 ME k s c", " ME C{c}", " ME T100", " MEx")),
    *(f"ms {{k}} 2{flags}{{b}}\r\nhi" for flags in (" MR", " MR q k", " C{c}", " C123456789", " C1 I", " MR C{c} O3")),
    *(f"ms {{k}} 2{flags}{{b}}\r\n77" for flags in (" MA", " MP s", " MA N30", " MP N30 q k", " N30 MA O2", " MA C1")),
    *(f"ms {{k}} 2{flags}{{b}}\r\nhi" for flags in (" MX", " Me", " N30", " MA Nx", " C", " T")),
    f"ms {{k}} {len(TOO_LARGE)}{{b}}\r\n{TOO_LARGE}",
    *(f"md {{k}}{flags}{{b}}" for flags in ("", " q", " k O4", " T30", " I", " I T30", " x", " x I T30", " C{c}")),
    *(f"md {{k}}{flags}{{b}}" for flags in (" C123456789", " C123456789 q k", " E77", " I q", " C")),
    *(f"ma {{k}}{flags}{{b}}" for flags in ("", " v", " D5 v t c", " MD D2 v", " q", " k O5", " C{c} v", " T100 t")),
    *(
        f"ma {{k}}{flags}{{b}}"
        for flags in (" N0 J7 v", " J7 D5 N30 v t", " N30 q", " N30 MD k v", " C1", " MX", " N v")
    ),
)
"""Meta commands."""


def requests(key: str, token: str, *, base64: bool) -> Iterator[bytes]:
    """All requests for a key. `base64`: whether the key is written so, which text commands cannot."""
    for template in META if base64 else (*PLAIN, *META):
        yield f"{template.format(k=key, b=' b' if base64 else '', c=token)}\r\n".encode()


def name(request: bytes) -> str:
    """A request in a message."""
    return request[:60].decode().strip()
