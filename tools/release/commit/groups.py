"""The API groups of the product: one setting, from which everything else follows.

The setting is `GROUP` of each kind in api/memcached_api. Other files that name a group, such as samples and tests, get
the new one by replacement; the generators write the rest. A group is chosen before the first installation: objects of
another group are different objects, and nothing migrates them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release.errors import ReleaseError

SETTINGS: Final = {
    "cache": ("api/memcached_api/memcached/types.py", r'^GROUP: Final = "(?P<value>.+)"$'),
    "app": ("api/memcached_api/appservice/types.py", r'^GROUP: Final = "(?P<value>.+)"$'),
    "annotations": ("api/memcached_api/annotations.py", r'^OWN_PREFIX: Final = "(?P<value>.+)/"$'),
}
"""The file of each setting and its line there."""
_SUBDOMAIN: Final = re.compile(r"(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z][-a-z0-9]{0,61}[a-z0-9]")
_LONGEST: Final = 180
"""A CRD's name is `<plural>.<group>`, and at most 253 characters long; an annotation's prefix is as long as a group."""
_RESERVED: Final = ("k8s.io", "kubernetes.io")
"""The API server accepts CRDs of these groups only with the approval of the Kubernetes project."""


@dataclass(frozen=True)
class Groups:
    """The group of each kind, and the domain of the annotations that the operator writes on its children.

    Raises ReleaseError for an invalid group, and for one group of both kinds.
    """

    cache: str
    app: str
    annotations: str

    def __post_init__(self) -> None:
        for name, group in (("GROUP", self.cache), ("APP_GROUP", self.app)):
            if len(group) > _LONGEST or not _SUBDOMAIN.fullmatch(group):
                raise ReleaseError(f"{name}={group!r} must be a domain name such as cache.acme.io")
            if group.endswith(tuple(f".{domain}" for domain in _RESERVED)):
                raise ReleaseError(f"{name}={group} is reserved for Kubernetes: use a domain of your own")
        if self.cache == self.app:
            raise ReleaseError(f"GROUP and APP_GROUP are both {self.cache}: choose two groups")

    @property
    def domain(self) -> str:
        """What follows the first label of the group, or the group itself if that would be a top-level domain."""
        rest = self.cache.partition(".")[2]
        return rest if "." in rest else self.cache


def chosen(group: str, app_group: str = "") -> Groups:
    """The groups that a user chose: `app.` and `memcached-operator.` are put before the same domain."""
    domain = Groups(group, f"x.{group}", "").domain
    return Groups(group, app_group or f"app.{domain}", f"memcached-operator.{domain}")


def current(files: Mapping[str, str]) -> Groups:
    """The groups of a tree. `files`: those of SETTINGS. Raises ReleaseError if a setting is not found."""
    found: dict[str, str] = {}
    for name, (file, pattern) in SETTINGS.items():
        match = re.search(pattern, files[file], re.MULTILINE)
        if not match:
            raise ReleaseError(f"{file} has no line that sets the group: correct tools/release/commit/groups.py")
        found[name] = match["value"]
    return Groups(**found)


def replaced(text: str, before: Groups, after: Groups) -> str:
    """The text with the new groups, also in OLM's roles, `<plural>.<group>-v1-admin`, and in the paths of webhooks:
    `/mutate-<group>-v1-…`, with dashes.

    A name that only ends with a group, such as `my-<group>`, stays.
    """
    pairs = {before.cache: after.cache, before.app: after.app, before.annotations: after.annotations}
    dashed = {name.replace(".", "-"): new.replace(".", "-") for name, new in pairs.items()}
    text = re.sub(rf"(?<![a-zA-Z0-9-]){_any(pairs)}(?=-v\d|(?![a-zA-Z0-9-]))", lambda match: pairs[match[0]], text)
    return re.sub(rf"(?:(?<=mutate-)|(?<=validate-)){_any(dashed)}(?=-)", lambda match: dashed[match[0]], text)


def _any(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})"


def regroup(root: Path, before: Groups, after: Groups) -> list[str]:
    """Change the groups in all files below a directory, and in their names; return the changed files.

    Files that are not UTF-8 text stay.
    """
    changed: list[str] = []
    for path in sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink()):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        target = path.with_name(replaced(path.name, before, after))
        if target == path and replaced(text, before, after) == text:
            continue
        mode = path.stat().st_mode
        path.unlink()
        target.write_text(replaced(text, before, after), encoding="utf-8")
        target.chmod(mode)
        changed.append(target.relative_to(root).as_posix())
    return changed
