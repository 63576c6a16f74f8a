"""What an upgrade of memcached changes, and what it leaves alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from kubectl_memcached.model import conditions, failing, images, losses, owners, units
from kubectl_memcached.model.known_problems import PROBLEMS
from kubectl_memcached.model.objects import Object, integer, mapping, text
from kubectl_memcached.model.shell import Shell

MIN_LIMIT: Final = 900.0
"""Seconds for a cache whose pods need less."""
START: Final = 60.0
"""Seconds until a new pod has pulled its image and is ready, before `minReadySeconds` and `warmUp`."""
WARM_UP: Final = 900.0
"""Seconds: the default of `rollout.warmUp.timeout`, as in the API."""


Pods = Callable[[Object], Sequence[Object]]
"""The pods of a Memcached, as the API server has them."""


class State(StrEnum):
    """What happens to a cache."""

    CHANGE = "change"
    RUNNING = "running"
    """It has the image already, but not all pods do."""
    DONE = "done"
    SKIPPED = "skipped"
    """It keeps its image, or has got another one from another client."""
    LATE = "late"
    """It has the image, but is not ready: its time is over, or it is paused or degraded for another cause."""
    FAILED = "failed"
    """It is degraded because of the image."""


@dataclass(frozen=True)
class Step:
    """The upgrade of one cache. `effect`: what admission says about it. `items_kept`: None if that is not known.
    `reason`: why it is skipped, is late or has failed, with the remedy. `known`: the signs that memcached failed before
    the change. `stalled`: since when its rollout was stalled then, or empty. `generation`: that of the spec with the
    new image, or 0. `seconds`: its time. `options`: those with which the user's kubectl reaches the cluster.
    """

    namespace: str
    name: str
    image: str
    target: str
    pods: int
    state: State
    uid: str
    reason: str = ""
    effect: str = ""
    items_kept: bool | None = None
    known: frozenset[str] = frozenset()
    stalled: str = ""
    generation: int = 0
    seconds: float = 0.0
    options: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """`NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.name}"

    def command(self, verb: str, to: str = "") -> str:
        """A command of the plugin for the cache. `to`: the image of `upgrade --to`."""
        return Shell(self.namespace, self.options).cache(verb, self.name, to)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "image": self.image,
            "target": self.target,
            "pods": self.pods,
            "state": self.state.value,
            "effect": self.effect,
            "itemsKept": self.items_kept,
            "reason": self.reason,
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True)
class Policy:
    """What may be changed. `is_default`: the new image is the operator's default. `by_name`: the user named the caches.

    `take_ownership`: also if another client has set the image, unless it is one that sets it again. `options`: those
    with which the user's kubectl reaches the cluster.
    """

    target: str
    is_default: bool
    by_name: bool
    take_ownership: bool = False
    options: tuple[str, ...] = ()


def steps(crs: Sequence[Object], policy: Policy, pods: Pods) -> list[Step]:
    """The upgrades of some Memcacheds. `pods`: those of a degraded one.

    A degraded one with the new image is skipped if this image works in another one. Otherwise, it stops the upgrade.
    """
    found = [(cr, step(cr, policy, pods(cr))) for cr in crs]
    works = any(each.image == policy.target and is_complete(cr, each.generation) for cr, each in found)
    return [_skipped(each, problem(cr, each.generation)) if works else each for cr, each in found]


def _skipped(made: Step, degraded: str) -> Step:
    if made.state is not State.RUNNING or not degraded:
        return made
    return replace(made, state=State.SKIPPED, reason=f"it is degraded: {degraded}")


def step(cr: Object, policy: Policy, pods: Sequence[Object]) -> Step:
    """The upgrade of a Memcached."""
    image, size = text(cr, "spec", "image"), integer(cr, "spec", "size")
    namespace, name = text(cr, "metadata", "namespace"), text(cr, "metadata", "name")
    target = image if _is_equal(image, policy) else policy.target
    uid, number = text(cr, "metadata", "uid"), 1 if size is None else size
    made = Step(namespace, name, image, target, number, State.CHANGE, uid, options=policy.options)
    generation = integer(cr, "metadata", "generation") or 0
    if image == target and is_complete(cr, generation) and not owners.is_ours(cr):
        return replace(made, state=State.DONE)
    if reason := obstacle(cr, made, policy, pods):
        return replace(made, state=State.SKIPPED, reason=reason)
    if image != target:
        return replace(made, items_kept=losses.keeps_items(cr, target))
    return replace(made, state=State.RUNNING, generation=generation)


def before(cr: Object, made: Step, pods: Sequence[Object]) -> Step:
    """The upgrade of a Memcached with the problems that this has before the change."""
    return replace(made, known=failing.signs(cr, pods, made.image), stalled=_stalled_since(cr))


def _is_equal(image: str, policy: Policy) -> bool:
    """Whether an image has the release of the new one: another name of it or, of the default one, also a variant."""
    numbers, suffix = images.tag(policy.target)
    if not numbers or images.repository(image) != images.repository(policy.target):
        return False
    found = images.tag(image)
    return not suffix and found[0] == numbers if policy.is_default else found == (numbers, suffix)


def obstacle(cr: Object, made: Step, policy: Policy, pods: Sequence[Object]) -> str:
    """Why a cache is left alone, with the remedy; empty if it can be changed."""
    if reason := _deleted(cr, made):
        return reason
    if made.image != made.target and (reason := _kept(cr, made, policy)):
        return reason
    if reason := _paused(cr, made):
        return reason
    is_other_name = made.image == made.target != policy.target  # which this command has not set
    if (degraded := problem(cr, 0)) and (is_other_name or not failing.signs(cr, pods, made.image)):
        return f"it is degraded: {degraded}"
    return conditions.unobserved(cr) if made.image != made.target or not conditions.conditions(cr) else ""


def interruption(cr: Object, begun: Step) -> str:
    """Why a cache that is being upgraded is left to the client that has changed it; empty if it goes on."""
    return _lost(cr, begun) or _paused(cr, begun)


def has_place(cr: Object, begun: Step) -> bool:
    """Whether a cache that another client has changed still counts as one that is not ready."""
    return not _deleted(cr, begun) and not (conditions.is_ready(cr) and not conditions.unobserved(cr))


def left_as(cr: Object, begun: Step) -> State:
    """The state of a cache that is left to the client that has changed it."""
    return State.SKIPPED if _lost(cr, begun) else State.LATE


def _lost(cr: Object, begun: Step) -> str:
    """Why a cache does not get the new image any more: another client has deleted it, or has set another image."""
    image = text(cr, "spec", "image")
    other = f"another client has set its image to {image or '-'}" if image != begun.target else ""
    return _deleted(cr, begun) or other


def _deleted(cr: Object, made: Step) -> str:
    if text(cr, "metadata", "uid") != made.uid:
        return "it was deleted, and another one has its name"
    return "it is being deleted" if text(cr, "metadata", "deletionTimestamp") else ""


def _paused(cr: Object, made: Step) -> str:
    if mapping(cr, "spec", "rollout").get("paused") is not True:
        return ""
    return f"its rollout is paused: run {made.command('resume')} first"


def _kept(cr: Object, made: Step, policy: Policy) -> str:
    """Why a cache keeps its image, which is not the new one."""
    owned = owners.obstacle(cr, policy.target, take_ownership=policy.take_ownership)
    return owned or _of_another_kind(made, policy)


def _of_another_kind(made: Step, policy: Policy) -> str:
    """Why the new image could be a wrong one for the cache, unless the user names both."""
    newest = images.release(policy.target)
    own = images.with_release(made.image, ".".join(map(str, newest)) or "TAG")
    same = images.repository(made.image) == images.repository(policy.target)
    if made.image and not same and not (policy.by_name and not policy.is_default):
        return f"its image is from another repository: run {made.command('upgrade', own)}"
    numbers, suffix = images.tag(made.image)
    if not policy.is_default:
        wanted, _ = images.tag(policy.target)
        is_older = bool(wanted) and wanted < numbers
        return "its release is newer: name the cache to go back" if is_older and not policy.by_name else ""
    if not (newest and made.image):
        return ""
    if numbers > newest:
        return f"its release is newer than the default: run {made.command('upgrade', policy.target)}, if that is right"
    if not numbers or suffix:
        likely = own if suffix else policy.target
        return f"its tag is not that of an older release: run {made.command('upgrade', likely)}, if that is right"
    return ""


def problem(cr: Object, generation: int) -> str:
    """The message of Degraded, if it is True for this generation of the spec or a later one. Otherwise empty."""
    found = conditions.condition(cr, "Degraded")
    observed = integer(cr, "status", "observedGeneration") or 0
    return found.message if not found.healthy and observed >= generation else ""


def failure(cr: Object, begun: Step, pods: Sequence[Object]) -> str:
    """The problem of a cache that is being upgraded; empty without one, or while it can be that of the old image.

    If the old image had one, it stays for a while after a pod has recovered. A rollout that becomes stalled ends this:
    the operator gives the new image to no other pod.
    """
    found = "" if _lost(cr, begun) else problem(cr, begun.generation)
    is_new = bool(_new_signs(cr, begun, pods)) or _stalled_since(cr) not in ("", begun.stalled)
    return found if not begun.known or is_new else ""


def is_of_change(cr: Object, begun: Step, pods: Sequence[Object]) -> bool:
    """Whether the problem of a cache is that of the new image, so that other caches would get it too.

    It is not if another client has changed the spec since.
    """
    is_unchanged = begun.generation in (0, integer(cr, "metadata", "generation"))
    return is_unchanged and bool(_new_signs(cr, begun, pods))


def _new_signs(cr: Object, begun: Step, pods: Sequence[Object]) -> frozenset[str]:
    return failing.signs(cr, pods, begun.target, begun.image) - begun.known


def _stalled_since(cr: Object) -> str:
    """The time since when the rollout of a cache is stalled; empty if it is not."""
    found = conditions.condition(cr, "Progressing")
    return found.since if found.reason == "Stalled" else ""


def is_complete(cr: Object, generation: int) -> bool:
    """Whether all pods have this generation of the spec, and are ready and warm."""
    paused = any(each.reason == "Paused" for each in conditions.conditions(cr))
    size = integer(cr, "spec", "size")
    observed = (integer(cr, "status", "observedGeneration") or 0) >= generation
    return observed and not paused and conditions.is_ready(cr) and _has_updated(cr, 1 if size is None else size)


def _has_updated(cr: Object, pods: int) -> bool:
    """Whether so many pods have the current template. An older operator does not count them."""
    updated = integer(cr, "status", "updatedReplicas")
    return updated is None or updated >= pods


def time_limit(cr: Object) -> float:
    """Seconds in which all pods of a cache can be replaced one after another and become warm, at least MIN_LIMIT."""
    rollout, size = conditions.rollout(cr), integer(cr, "spec", "size")
    is_warmed = isinstance(rollout.get("warmUp"), Mapping)
    warm_up = units.parsed_duration(text(rollout, "warmUp", "timeout")) or WARM_UP if is_warmed else 0.0
    each = START + (integer(rollout, "minReadySeconds") or 0) + warm_up
    return max(MIN_LIMIT, (1 if size is None else size) * each)


def progress_message(cr: Object) -> str:
    """What the operator says about the rollout."""
    found = conditions.condition(cr, "Progressing")
    return "" if found.healthy else found.message


def corrected_in(cr: Object) -> str:
    """The release that corrects the known problems of a cache's memcached; empty without any, or if it is not known.

    The spec may name no image, or one that does not say which release it contains.
    """
    release, spec = images.official_release(text(cr, "spec", "image")), mapping(cr, "spec")
    sections = {"auth": spec.get("auth"), "cache.extstore": mapping(spec, "cache").get("extstore")}
    used = {name: isinstance(section, Mapping) for name, section in sections.items()}
    used |= {"": True, "cache.warmRestart": losses.is_warm(spec)}
    found = [corrected for seen, corrected, use in PROBLEMS if release and release <= seen and used[use]]
    return ".".join(map(str, max(found, default=())))


def remedy(cr: Object, options: Sequence[str]) -> str:
    """The command that ends the known problems of a cache's image; empty without any. It keeps the rest of the tag.

    It names the image, because the operator's default one can have the problems, too. `options`: those with which the
    user's kubectl reaches the cluster.
    """
    if not (corrected := corrected_in(cr)):
        return ""
    to = images.with_release(text(cr, "spec", "image"), corrected)
    shell = Shell(text(cr, "metadata", "namespace"), tuple(options))
    return shell.cache("upgrade", text(cr, "metadata", "name"), to)


def estimate(steps: Sequence[Step], at_once: int) -> float | None:
    """Seconds until all are upgraded, by the time per pod so far. None before the first one."""
    done = [each for each in steps if each.state is State.DONE and each.seconds]
    pods = sum(each.pods for each in done)
    if not pods:
        return None
    rest = sum(each.pods for each in steps if each.state in (State.CHANGE, State.RUNNING))
    return sum(each.seconds for each in done) / pods * rest / at_once
