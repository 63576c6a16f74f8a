"""The comparison of keys and their slots with the placements of all libraries."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import sqrt
from typing import Final

from kubectl_memcached.ring.libraries import LIBRARIES, Library
from kubectl_memcached.ring.placements import Server
from kubectl_memcached.ring.servers import Form, ServerList, orders, other_slots

Keys = Sequence[tuple[bytes, int]]
"""Keys with the numbers of their slots, in random order."""
Excluded = dict[bytes, tuple[int, ...]]
"""Keys with the slots in which the placements before look for them."""

MIN_KEYS: Final = 20
"""With fewer keys, several libraries match by chance."""
AGREED: Final = 0.99
"""The share of keys from which no other list is tried."""
MAX_CLIENTS: Final = 3
"""Different placements that are looked for in one sample."""
MIN_SHARE: Final = 0.3
"""The share of the remaining keys that a placement must explain. Each of MAX_CLIENTS with equal shares exceeds it."""
MIN_EXCESS: Final = 0.38
"""The share of the keys beyond those that match by chance which a placement after the first one must explain. Of two
clients that remain, the larger one exceeds it: with three slots, it explains about 0.43. With less, the placement can
be like a part of the ring of one unknown library."""
SIGMAS: Final = 5.0
"""Standard deviations above chance: about 1,000 candidates are tried."""
ROUNDS: Final = ((40, 40), (150, 8))
"""Keys of a round, and the candidates that are kept after it. The last ones are compared with all keys."""
MAX_PREFIXES: Final = 4
PREFIXED: Final = 0.1
"""The share of the keys that have a prefix."""
SEPARATORS: Final = b":._-/|"
"""The last characters of a prefix."""
DERIVED_FROM: Final = 1000
"""Keys from which the order of servers and prefixes are derived."""
GAIN: Final = 0.01
"""The share of keys by which an unusual list must be better than a usual one."""


@dataclass(frozen=True)
class Candidate:
    """A library with a list of servers. `prefix`: the beginning of keys that it does not hash."""

    library: Library
    servers: ServerList
    prefix: bytes = b""

    def slots(self, keys: Iterable[bytes]) -> list[int]:
        """The slot in which it looks for each key."""
        place, slots = self.library.build(self.servers.servers), self.servers.slots
        return [slots[place(key.removeprefix(self.prefix))] for key in keys]


@dataclass(frozen=True)
class Match:
    """A candidate, and the keys that lie where it looks for them."""

    candidate: Candidate
    keys: Keys


@dataclass(frozen=True)
class Finding:
    """The placements that explain a sample, the largest first, and the keys that none of them explains."""

    matches: list[Match]
    rest: Keys
    expected: Mapping[bytes, int]
    """The slot in which the first placement looks for each key that it does not explain."""


@dataclass(frozen=True)
class Cache:
    """The servers of a cache. `addresses`: IP addresses of pods by slot."""

    size: int
    forms: Sequence[Form]
    addresses: Mapping[int, str]

    @property
    def limit(self) -> int:
        """Keys with which a result is exact enough, and computed within seconds for rendezvous hashing."""
        return max(200, min(5000, 200_000 // self.size))


def compare(keys: Keys, cache: Cache) -> Finding:
    """Find the placements of the clients that stored these keys."""
    matches, rest, expected = list[Match](), keys, dict[bytes, int]()
    excluded = Excluded()
    while len(matches) < MAX_CLIENTS and len(rest) >= MIN_KEYS:
        candidate = _best(rest, cache, excluded)
        if candidate is None:
            break
        slots = candidate.slots(key for key, _ in rest)
        found = [key for key, slot in zip(rest, slots, strict=True) if key[1] == slot]
        others = [(key, slot) for key, slot in zip(rest, slots, strict=True) if key[1] != slot]
        if not matches:
            expected = {key: slot for (key, _), slot in others}
        matches.append(Match(candidate, found))
        rest = [key for key, _ in others]
        excluded = {key: (*excluded.get(key, ()), slot) for (key, _), slot in others}
    return Finding(matches, rest, expected)


def _best(keys: Keys, cache: Cache, excluded: Excluded) -> Candidate | None:
    """The candidate that explains most keys, if these are more than by chance. Current lists are tried first."""
    best: tuple[int, Candidate] | None = None
    for stage in (_current, _other, _prefixed):
        stage_best = max(_finalists(stage(keys, cache), keys), key=lambda pair: pair[0], default=None)
        if stage_best and (best is None or stage_best[0] > best[0] + GAIN * len(keys)):
            best = stage_best
        if best and best[0] >= AGREED * len(keys):
            break
    enough = best and best[0] >= MIN_SHARE * len(keys)
    return best[1] if best and enough and _is_significant(*best, keys, excluded) else None


def _finalists(candidates: Iterator[Candidate], keys: Keys) -> list[tuple[int, Candidate]]:
    """The candidates that explain most keys, and how many they explain. Each round has more keys."""
    left = list(candidates)
    for number, kept in ROUNDS:
        first = keys[:number]
        scores = {candidate: _hits(candidate, first) for candidate in left}
        left = sorted(left, key=lambda candidate: -scores[candidate])[:kept]
    return [(_hits(candidate, keys), candidate) for candidate in left]


def _hits(candidate: Candidate, keys: Keys) -> int:
    slots = candidate.slots(key for key, _ in keys)
    return sum(slot == found for (_, found), slot in zip(keys, slots, strict=True))


def _is_significant(hits: int, candidate: Candidate, keys: Keys, excluded: Excluded) -> bool:
    """Whether more keys match, `hits`, than if the candidate's slots and those of the keys were independent.

    `excluded`: the slots in which earlier placements look for a key, so that it cannot be there. The keys with the same
    ones are compared with each other: of three slots with one excluded, each other one holds half of the keys.
    """
    slots = candidate.slots(key for key, _ in keys)
    groups = defaultdict[tuple[int, ...], list[tuple[int, int]]](list)
    for (key, found), predicted in zip(keys, slots, strict=True):
        groups[excluded.get(key, ())].append((predicted, found))
    parts = [(len(pairs), _by_chance(pairs)) for pairs in groups.values()]
    expected = sum(number * chance for number, chance in parts)
    deviation = sqrt(sum(number * chance * (1 - chance) for number, chance in parts))
    needed = MIN_EXCESS * (len(keys) - expected) if excluded else 0
    return hits > expected + max(needed, SIGMAS * deviation)


def _by_chance(pairs: Sequence[tuple[int, int]]) -> float:
    """The share of the pairs of slots, predicted and found, that would be equal if both were independent."""
    predicted, found = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    return sum(predicted[slot] * found[slot] for slot in found) / len(pairs) ** 2


def _current(keys: Keys, cache: Cache) -> Iterator[Candidate]:
    yield from _with(keys, cache, tuple(range(cache.size)), LIBRARIES)


def _other(keys: Keys, cache: Cache) -> Iterator[Candidate]:
    # Variants are rare, and old lists as well: both together would cost more time than they are worth.
    libraries = [library for library in LIBRARIES if not library.of]
    for slots in other_slots(cache.size):
        yield from _with(keys, cache, slots, libraries)


def _prefixed(keys: Keys, cache: Cache) -> Iterator[Candidate]:
    libraries = [library for library in LIBRARIES if library.prefixed]
    for prefix in prefixes(key for key, _ in keys):
        stripped = [(key.removeprefix(prefix), slot) for key, slot in keys]
        for candidate in _with(stripped, cache, tuple(range(cache.size)), libraries):
            yield replace(candidate, prefix=prefix)


def _with(keys: Keys, cache: Cache, slots: tuple[int, ...], libraries: Iterable[Library]) -> Iterator[Candidate]:
    """The candidates of libraries for a list with these slots."""
    for library in libraries:
        if library.named:
            for form in cache.forms:
                if (servers := form.listed(slots)) and library.fits(servers.servers):
                    yield Candidate(library, servers)
        else:
            yield _ordered(keys, cache, slots, library)


def _ordered(keys: Keys, cache: Cache, slots: tuple[int, ...], library: Library) -> Candidate:
    """A library for which only the order of the servers matters, with the usual or derived order that fits best."""
    keys = keys[:DERIVED_FROM]
    place = library.build([Server("", 0)] * len(slots))
    counts = Counter((place(key), slot) for key, slot in keys)

    def hits(order: Sequence[int]) -> int:
        return sum(counts[index, slot] for index, slot in enumerate(order))

    label, usual = max(orders(cache.addresses, slots), key=lambda pair: hits(pair[1]))
    derived = _derived(counts, slots)
    if hits(derived) > hits(usual) + GAIN * len(keys):
        label, usual = "in another order", derived
    return Candidate(library, ServerList(label, (Server("", 0),) * len(slots), usual))


def _derived(counts: Mapping[tuple[int, int], int], slots: Sequence[int]) -> tuple[int, ...]:
    """The order in which most keys match: each position gets the slot that holds most of its keys."""
    order: dict[int, int] = {}
    for index, slot in sorted(counts, key=lambda pair: -counts[pair]):
        if index not in order and slot in slots and slot not in order.values():
            order[index] = slot
    unused = iter([slot for slot in slots if slot not in order.values()])
    return tuple(order[index] if index in order else next(unused) for index in range(len(slots)))


def prefixes(keys: Iterable[bytes]) -> list[bytes]:
    """The most frequent beginnings of keys up to a separator."""
    counts, listed = Counter[bytes](), list(islice(keys, DERIVED_FROM))
    for key in listed:
        counts.update(key[: position + 1] for position, byte in enumerate(key[:-1]) if byte in SEPARATORS)
    return [prefix for prefix, count in counts.most_common(MAX_PREFIXES) if count >= PREFIXED * len(listed)]
