"""The known problems of memcached releases that concern caches of this operator.

Problems of what caches do not use are left out: SASL, the proxy, listeners of the binary protocol.
A new release of memcached: docs/releasing.md.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from memcached_api.image import Release, official_release


class Use(Enum):
    """What a cache must use to be affected by a problem."""

    ANY = ""
    AUTH = "auth"
    WARM_RESTART = "cache.warmRestart"
    EXTSTORE = "cache.extstore"


class Problem(NamedTuple):
    """A problem of all releases up to `seen`, the newest one without the commit that corrects it. `corrected`: the
    first one with it.

    `effect`: what can happen, as a clause. `source`: the commit in memcached's repository, by its first digits. `use`:
    the caches that it affects.
    """

    seen: Release
    corrected: Release
    effect: str
    source: str
    use: Use = Use.ANY


_40, _41, _42, _43, _44, NEWEST = ((1, 6, minor) for minor in (40, 41, 42, 43, 44, 45))
PROBLEMS: Final = (
    Problem(_41, _42, "a client can crash memcached with one line, without a login", "9981d748f", Use.AUTH),
    Problem(_43, _44, "a client can crash memcached with an empty line, without a login", "af05c9302", Use.AUTH),
    Problem(_41, _42, "a change of the users can disturb logins at the same time", "57934a1d0", Use.AUTH),
    Problem(_44, NEWEST, "a damaged file of a warm restart can crash memcached", "0d77dc6c3", Use.WARM_RESTART),
    Problem(
        _40, _41, "a cache with items on a disk loses items in use when it compacts its file", "04a8bef", Use.EXTSTORE
    ),
    Problem(_43, _44, "a client that lists all keys and stops reading can damage memory", "7eeac6e9a"),
    Problem(_44, NEWEST, "a closed `watch` connection can crash memcached", "e7793811f"),
    Problem(_41, _42, "moving memory between sizes of items can crash memcached", "0240ddee0"),
)
"""The most important one first."""

MAX_EFFECTS: Final = 3
"""Effects in the sentence of a status."""
NAME: Final = "memcached"


def known_problems(image: str, *, auth: bool, warm_restart: bool, extstore: bool) -> list[Problem]:
    """The problems of a cache with this image, the most important one first.

    Empty also if the image does not say which release it contains: another registry's, a tag such as `1.6`, a digest.
    """
    release = official_release(image, NAME)
    used = {Use.ANY: True, Use.AUTH: auth, Use.WARM_RESTART: warm_restart, Use.EXTSTORE: extstore}
    return [each for each in PROBLEMS if release is not None and release <= each.seen and used[each.use]]


def sentence(image: str, problems: Sequence[Problem], effects: int = MAX_EFFECTS) -> str:
    """What can happen with the image, and the release that corrects it. `problems`: at least one of this image.

    `effects`: of so many problems.
    """
    release = official_release(image, NAME)
    rest = len(problems) - effects
    named = [each.effect for each in problems[:effects]] + ([f"{rest} more"] if rest > 0 else [])
    effects_named, to = "; ".join(named), text(corrected(problems))
    return f"memcached {text(release or ())} has known problems, which {to} corrects: {effects_named}"


def corrected(problems: Sequence[Problem]) -> Release:
    """The first release that is known to have none of the problems."""
    return max(each.corrected for each in problems)


def text(release: Release | tuple[()]) -> str:
    """A release as in a tag: `1.6.45`."""
    return ".".join(map(str, release))
