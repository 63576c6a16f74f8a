"""The result of a comparison in sentences."""

from collections import Counter
from collections.abc import Sequence

from kubectl_memcached.ring.libraries import Library
from kubectl_memcached.ring.matching import AGREED, MIN_KEYS, Candidate, Finding

UNKNOWN = (
    "other clients may use another ring or an old list, or one library with a ring that is similar, but not known, "
    "stored all keys"
)
"""Where no placement explains the rest, both look the same."""


def agrees(finding: Finding, size: int) -> bool:
    """Whether nearly all keys lie where one library with the current list looks for them."""
    if not finding.matches:
        return False
    first = finding.matches[0]
    return len(first.keys) >= AGREED * _total(finding) and is_current(first.candidate, size)


def is_current(candidate: Candidate, size: int) -> bool:
    """Whether the list has exactly the slots of the cache."""
    return sorted(candidate.servers.slots) == list(range(size))


def sentences(finding: Finding, names: Sequence[str], seconds: float) -> list[str]:
    """The result. `names`: of the servers of the cache, by slot. `seconds`: for which they were watched."""
    total = _total(finding)
    if total < MIN_KEYS:
        stored = f"Only {total} new keys were" if total > 1 else "Only one new key was" if total else "No new keys were"
        return [f"{stored} stored in {seconds:g} s. {MIN_KEYS} are needed: use --seconds with a longer time."]
    if not finding.matches:
        return [
            f"The {total:,} new keys do not lie where a known library looks for them: "
            "the clients use another library, other names of the servers, or different lists."
        ]
    return [_result(finding, names, total), *_lists(finding), *_remedies(finding, len(names))]


def _total(finding: Finding) -> int:
    return len(finding.rest) + sum(len(match.keys) for match in finding.matches)


def _result(finding: Finding, names: Sequence[str], total: int) -> str:
    first, *others = finding.matches
    place = f"of the {total:,} new keys lie where {client(first.candidate, names)} looks for them"
    if len(first.keys) == total:
        return f"All {place}.".replace("All of the", "All", 1)
    parts = [f"{percent(len(first.keys), total)} {place}"]
    for match in others:
        found = client(match.candidate, names)
        parts += [f"{percent(len(match.keys), total)} lie elsewhere, where {found} looks for them"]
    if finding.rest:
        more = " also" if others else ""
        parts.append(f"{percent(len(finding.rest), total)} lie{more} elsewhere: {UNKNOWN}")
    return "; ".join(parts) + "."


def client(candidate: Candidate, names: Sequence[str]) -> str:
    """A library with its list: `gomemcache with 3 servers`."""
    slots, library = candidate.servers.slots, candidate.library.name
    if is_current(candidate, len(names)):
        return f"{library} with {len(slots)} servers"
    missing = [name for slot, name in enumerate(names) if slot not in slots]
    if len(missing) == 1 and missing[0] != names[-1] and len(slots) < len(names):
        return f"{library} with a list without {missing[0]}"
    return f"{library} with {'an old' if missing else 'a'} list of {len(slots)} servers"


def _lists(finding: Finding) -> list[str]:
    """The forms of the servers. The libraries differ if there are several."""
    told = list[str]()
    for match in finding.matches:
        candidate = match.candidate
        prefix = ", and adds a prefix to its keys" if candidate.prefix else ""
        library = candidate.library
        told.append(f"{library.name} {library.verb} {form(candidate)}{prefix}.")
        if library.also:
            told.append(f"{library.name} has the same ring as {library.also}.")
    return list(dict.fromkeys(told))


def form(candidate: Candidate) -> str:
    """The form of a list: `the full DNS names of pods, port 11211`, or `the servers in the order of the slots`."""
    servers = candidate.servers
    if candidate.library.named:
        return f"the {servers.label}, port {servers.servers[0].port}"
    return f"the servers {servers.label}"


def _remedies(finding: Finding, size: int) -> list[str]:
    first, *others = [match.candidate for match in finding.matches]
    if not is_current(first, size):
        return [f"The cache has {size} servers: let the clients read the current list again."]
    if not others or len(finding.rest) > (1 - AGREED) * _total(finding):
        return []  # with many other keys, a second placement can be that of an unknown library in a part of them
    if different := _different(list(dict.fromkeys(match.candidate.library for match in finding.matches))):
        return different
    if any(not is_current(other, size) for other in others):
        return ["Some clients have another list of servers: let all of them read the current list again."]
    return ["The clients write the servers in different ways or orders: give all of them the same list."]


def _different(libraries: Sequence[Library]) -> list[str]:
    """The remedies for clients with different rings: those of variants of one library, or to use one library."""
    rings = Counter(library.ring for library in libraries)
    variants = [library.remedy for library in libraries if library.remedy and rings[library.ring] > 1]
    if len(rings) > 1:
        variants.append("The clients use different rings: use one library with the same settings in all of them.")
    return variants


def percent(part: int, whole: int) -> str:
    """A share with one decimal. Only the whole is 100, and only nothing is 0."""
    return f"{min(99.9, max(0.1, 100 * part / whole)) if 0 < part < whole else 100 * part / whole:.1f} %"


def misplaced(finding: Finding, names: Sequence[str], limit: int) -> list[tuple[str, str, bytes]]:
    """Keys that do not lie where the first placement looks: the server that has it, the right one, and the key."""
    elsewhere = [*finding.rest, *(pair for match in finding.matches[1:] for pair in match.keys)]
    return [
        (names[slot], _name(names, finding.expected[key]), key)
        for key, slot in elsewhere[:limit]
        if key in finding.expected
    ]


def _name(names: Sequence[str], slot: int) -> str:
    """The name of a server, which a list with too many servers can have although the cache does not."""
    return names[slot] if slot < len(names) else "no pod"
