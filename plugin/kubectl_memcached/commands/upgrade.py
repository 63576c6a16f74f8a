"""`upgrade`: another image of memcached for many caches, one after the other."""

import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import click

from kubectl_memcached import output
from kubectl_memcached.cluster import upgrades
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.commands.options import cluster_command, confirm, names, output_option, seconds_of, yes_option
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import conditions, images, units, upgrading
from kubectl_memcached.model.objects import Object, full_name, integer, text
from kubectl_memcached.model.printable import one_line
from kubectl_memcached.model.upgrading import Policy, State, Step
from kubectl_memcached.progress import progress

DEFAULT: Final = "default"
"""The value of --to for the image that the operator sets in a new Memcached."""
EXAMPLE: Final = "docker.io/library/memcached:1.6.45"
NAME: Final = re.compile(r"(?:[a-z0-9-]+/)?[a-z0-9][a-z0-9.-]*")
"""A cache on the command line, with or without its namespace."""
POLL: Final = 2.0
"""Seconds between two reads of a cache that is being upgraded."""
DRY_RUNS: Final = 8
"""Dry runs at the same time."""
COLUMNS: Final = ("CACHE", "IMAGE", "PODS", "WHAT HAPPENS")
PATIENCE: Final = 120.0
"""Seconds without a reply of the API server that end the upgrade."""
LATE: Final = 30.0
"""Seconds after which an operator that has not observed the change is reported."""
OPEN: Final = (State.CHANGE, State.RUNNING)


@dataclass(frozen=True)
class Request:
    """The arguments and options of the command line, as click has parsed them. `timeout`: None: by each cache."""

    name: tuple[str, ...]
    all_namespaces: bool
    selector: str
    excluded: tuple[str, ...]
    to: str
    canary: str
    at_once: int
    timeout: float | None
    take_ownership: bool
    dry_run: bool
    yes: bool
    output: str


@click.command()
@click.argument("name", nargs=-1, metavar="[[NAMESPACE/]NAME]...", shell_complete=names)
@click.option("-A", "--all-namespaces", is_flag=True, help="The caches of all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only caches with these labels.")
@click.option("--except", "excluded", multiple=True, metavar="[NAMESPACE/]NAME", help="Not this cache. Repeatable.")
@click.option("--to", default=DEFAULT, show_default=True, metavar="IMAGE", help="New image; default: the operator's.")
@click.option("--canary", default="", metavar="LABELS", help="The caches with these labels first.")
@click.option("--at-once", type=click.IntRange(1, 50), default=1, show_default=True, help="Caches that are not ready.")
@click.option(
    "--timeout",
    callback=seconds_of,
    default=None,
    metavar="DURATION",
    help="Time after which a cache is late [by its pods and warmUp, at least 15m].",
)
@click.option("--take-ownership", is_flag=True, help="Also change images that another client has set, but not GitOps.")
@click.option("--dry-run", is_flag=True, help="Only list what would change.")
@yes_option
@output_option
@cluster_command
def upgrade(kubectl: Kubectl, **values: Any) -> None:
    """Upgrade memcached, one cache after the other, each until it is ready and warm.

    Name the caches, or select them with -A or --selector. It stops at the first cache that becomes degraded
    because of the new image, and if as many caches as --at-once are late. If you interrupt it, run it again: it goes on
    with the caches that do not have the image yet.

    Exits with 1 if a cache is skipped, is late or becomes degraded.
    """
    request = Request(**values)
    if wrong := [each for each in (*request.name, *request.excluded) if not NAME.fullmatch(each)]:
        raise PluginError(f"{wrong[0]!r} is neither NAME nor NAMESPACE/NAME of a cache.", ExitCode.USAGE)
    if request.to != DEFAULT and not images.is_fixed(request.to):
        raise PluginError(f"--to needs an image with a tag or a digest, such as {EXAMPLE}.", ExitCode.USAGE)
    if bool(request.name) == (request.all_namespaces or bool(request.selector)):
        raise PluginError("Name the caches, or select them with -A or --selector.", ExitCode.USAGE)
    found = _Upgrade(kubectl, request)
    if request.output == "table":
        _show(found.steps)
    if found.of(*OPEN) and not request.dry_run:
        if not request.yes:
            _ask(found)
        try:
            found.run()
        finally:
            _document(request, found)
    else:
        _document(request, found)
    if found.of(State.SKIPPED, State.LATE, State.FAILED):
        raise SystemExit(ExitCode.NEGATIVE)


def _document(request: Request, found: "_Upgrade") -> None:
    """Write the result as JSON, if the user wants it; also of an upgrade that has stopped."""
    if request.output == "json":
        output.print_json({"image": found.target, "caches": [each.document() for each in found.steps]})


@dataclass
class _Active:
    """A cache with a changed image that is not ready. `started`, `read`: by the monotonic clock, the latter of the last
    reply. `message`: the last one that was printed.

    `left`: the state in which it is left, without which the command waits for it. It keeps its place of --at-once until
    it is ready. `stuck`: the command does not expect that.
    """

    step: Step
    started: float
    read: float
    message: str = ""
    left: State | None = None
    stuck: bool = False


class _Upgrade:
    """The caches with what happens to each, in their order. `target`: the new image."""

    def __init__(self, kubectl: Kubectl, request: Request) -> None:
        self._kubectl = kubectl
        self._at_once = request.at_once
        self._file = sys.stderr if request.output == "json" else sys.stdout
        crs = self._listed(request)
        if not crs:
            raise PluginError("There are no such caches.", ExitCode.MISSING)
        self.target = self._image(request, crs)
        self._timeout = request.timeout
        self._active: list[_Active] = []
        options = tuple(kubectl.cluster_options)
        self._policy = Policy(self.target, request.to == DEFAULT, bool(request.name), request.take_ownership, options)
        self.steps = sorted(upgrading.steps(crs, self._policy, self._known_pods), key=_order)
        self._canaries = self._canary_names(request) if request.canary else set[str]()
        self._dry_run()

    def _pods(self, cr: Object) -> list[Object]:
        return upgrades.pods(self._kubectl, cr)

    def _known_pods(self, cr: Object) -> list[Object]:
        """The pods of a cache; none if they cannot be read: a degraded cache is skipped, or late."""
        try:
            return self._pods(cr)
        except PluginError:
            return []

    def _listed(self, request: Request) -> list[Object]:
        """The caches without those of --except. Raises PluginError if one of these is not among the caches."""
        crs = upgrades.caches(self._kubectl, request.name, request.selector, everywhere=request.all_namespaces)
        excluded = {self._excluded(name, crs, request) for name in request.excluded}
        if unknown := sorted(excluded - {full_name(cr) for cr in crs}):
            raise PluginError(f"{unknown[0]} of --except is not one of the caches.", ExitCode.MISSING)
        return [cr for cr in crs if full_name(cr) not in excluded]

    def _excluded(self, name: str, crs: Sequence[Object], request: Request) -> str:
        """The full name of a cache of --except. Raises PluginError if its namespace is not known."""
        namespaces = {self._kubectl.namespace} - {""}
        if not namespaces and not request.all_namespaces:
            namespaces = {text(cr, "metadata", "namespace") for cr in crs}
        if "/" in name or not crs:
            return name
        if len(namespaces) != 1:
            raise PluginError(f"--except {name} needs its namespace: --except NAMESPACE/{name}.", ExitCode.USAGE)
        return f"{namespaces.pop()}/{name}"

    def _image(self, request: Request, crs: Sequence[Object]) -> str:
        """The image of `--to`; by default, the one that admission sets in a new Memcached."""
        if request.to != DEFAULT:
            return request.to
        return upgrades.default_image(self._kubectl, sorted({text(cr, "metadata", "namespace") for cr in crs}))

    def of(self, *states: State) -> list[Step]:
        """The caches in these states."""
        return [each for each in self.steps if each.state in states]

    def run(self) -> None:
        """Upgrade the caches, the canaries first. Raises PluginError at the first one that becomes degraded."""
        try:
            # Those that another run has begun first: no more caches that are not ready than --at-once.
            self._run(self.of(State.RUNNING))
            self._run([each for each in self.of(State.CHANGE) if each.full_name in self._canaries])
            self._check_canaries()
            self._run(self.of(State.CHANGE))
        except KeyboardInterrupt:
            self._say(f"Interrupted. {self._left()}")
            raise
        self._say(f"{len(self.of(State.DONE))} of {len(self.steps)} upgraded to {self.target}.")

    def _check_canaries(self) -> None:
        """Raise PluginError if there are canaries, but none has the image: nothing has shown that the image works."""
        canaries = [each for each in self.steps if each.full_name in self._canaries]
        if canaries and all(each.state is not State.DONE for each in canaries):
            first = canaries[0]
            raise self._stopped(f"No canary has the image. {first.full_name} is {first.state}: {first.reason}")

    def _canary_names(self, request: Request) -> set[str]:
        """The canaries. Raises PluginError if they are not among the caches to upgrade."""
        if request.name:
            found = upgrades.labelled(self._kubectl, request.canary, sorted({each.namespace for each in self.steps}))
        else:
            crs = upgrades.caches(self._kubectl, (), request.canary, everywhere=request.all_namespaces)
            found = {full_name(cr) for cr in crs}
        if not found & {each.full_name for each in self.steps}:
            raise PluginError(f"None of the caches has the labels {request.canary} of --canary.", ExitCode.MISSING)
        return found

    def _dry_run(self) -> None:
        """Let admission say what each change does."""
        with progress("Asking admission", len(self.of(State.CHANGE))) as shown, ThreadPoolExecutor(DRY_RUNS) as pool:

            def judged(step: Step) -> Step:
                if step.state is not State.CHANGE:
                    return step
                try:
                    said = "; ".join(upgrades.warnings(self._kubectl, step))
                except PluginError as error:
                    return replace(step, state=State.SKIPPED, reason=str(error), items_kept=None)
                finally:
                    shown.step()
                return replace(step, effect=said, items_kept=step.items_kept if said else None)

            self.steps = list(pool.map(judged, self.steps))

    def _run(self, waiting: list[Step]) -> None:
        """Upgrade some caches, a few at the same time. Raises PluginError if too many of them do not become ready."""
        while waiting or any(each.left is None for each in self._active):
            # A cache that another run has begun is not ready, whether this run waits for it or not.
            while waiting and (waiting[0].state is State.RUNNING or len(self._active) < self._at_once):
                begun = self._begin(waiting.pop(0))
                now = time.monotonic()
                self._active += [_Active(begun, now, now)] if begun is not None else []
            self._active = [each for each in self._active if not self._has_ended(each)]
            if waiting and len(self._active) >= self._at_once and all(each.stuck for each in self._active):
                raise self._full()
            if self._active:
                time.sleep(POLL)

    def _full(self) -> PluginError:
        """The error if no other cache may be changed, because those that are changed do not become ready."""
        names = [each.step.full_name for each in self._active]
        stuck = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not ready"
        return self._stopped(
            f"{stuck}, and --at-once {self._at_once} allows no other change", step=self._active[0].step
        )

    def _has_ended(self, active: "_Active") -> bool:
        """Read a cache that is not ready, and return whether it is. Raises PluginError if it is degraded because of the
        image, or cannot be read for a while. A deleted cache has ended as well.
        """
        step, now = active.step, time.monotonic()
        try:
            cr = upgrades.current(self._kubectl, step)
        except PluginError as error:
            return self._is_gone(active, error, now)
        active.read, pods = now, self._known_pods(cr)
        limit = self._timeout or upgrading.time_limit(cr)
        failed = upgrading.failure(cr, step, pods)
        active.stuck = bool(failed) or now - active.started > limit
        if failed:
            if upgrading.is_of_change(cr, step, pods):
                self._fail(step, failed)
            self._leave(active, State.LATE, f"it is degraded: {failed}")
        elif reason := upgrading.interruption(cr, step):
            self._leave(active, upgrading.left_as(cr, step), reason)
            return not upgrading.has_place(cr, step)
        elif upgrading.is_complete(cr, step.generation):
            self._end(step, now - active.started)
            return True
        else:
            self._report(active, cr, now - active.started, limit)
        return False

    def _report(self, active: "_Active", cr: Object, seconds: float, limit: float) -> None:
        """Print the progress of a cache, and that it is late. `seconds`: since the change. `limit`: of them."""
        late = conditions.unobserved(cr) if seconds > LATE else ""
        message = upgrading.progress_message(cr) or late
        if active.stuck:
            why = f": {message}" if message else ""
            self._leave(active, State.LATE, f"it is not ready after {units.duration(limit)}{why}")
        elif message and message != active.message:
            active.message = message
            self._say(f"  {active.step.full_name}: {message}")

    def _leave(self, active: "_Active", state: State, reason: str) -> None:
        """Do not wait for a cache any more. It keeps its place until it is ready."""
        if active.left is not state:
            active.left = state
            self._put_left(active.step, state, reason)

    def _is_gone(self, active: "_Active", error: PluginError, now: float) -> bool:
        """Whether a cache that cannot be read was deleted. Raises PluginError if it cannot be read for PATIENCE."""
        if upgrades.is_deleted(error, active.step):
            self._skip(active.step, "it was deleted")
            return True
        if now - active.read > PATIENCE:
            raise self._stopped(str(error), error.code, active.step)
        return False

    def _begin(self, step: Step) -> Step | None:
        """Change the image; None if the cache has to be skipped. Raises PluginError if its state is not known."""
        if step.state is State.RUNNING:
            self._say(f"{step.full_name} has the image already. Waiting until all its pods have it")
            self._disown(step)
            return step
        begun = replace(step, state=State.RUNNING)
        try:
            cr = upgrades.current(self._kubectl, step)
            pods = self._pods(cr)
            if reason := upgrading.obstacle(cr, step, self._policy, pods):
                return self._skip(step, reason)
            begun = upgrading.before(cr, begun, pods)
            self._put(begun)  # before the patch: an interrupted one can have had an effect
            begun = replace(begun, generation=upgrades.change(self._kubectl, step))
        except PluginError as error:
            return self._undecided(begun, error)
        self._put(begun)
        self._say(f"{step.full_name}: {step.image or '-'} → {step.target}, {_pods(step.pods)}")
        self._disown(begun)
        return begun

    def _undecided(self, step: Step, error: PluginError) -> Step | None:
        """The cache whose change has failed: it is skipped only if the image is certainly the old one."""
        try:
            cr = upgrades.current(self._kubectl, step)
        except PluginError as unread:
            if upgrades.is_deleted(unread, step):
                return self._skip(step, "it was deleted")
            raise self._stopped(str(error), error.code, step) from None
        if text(cr, "spec", "image") != step.target:
            return self._skip(step, str(error))
        begun = replace(step, generation=integer(cr, "metadata", "generation") or 0)
        self._put(begun)
        return begun

    def _disown(self, step: Step) -> None:
        """Give up the image. A failure does not matter for the pods."""
        try:
            upgrades.disown(self._kubectl, step)
        except PluginError as error:
            self._say(f"  {step.full_name}: {error}")

    def _skip(self, step: Step, reason: str) -> None:
        self._put_left(step, State.SKIPPED, reason)

    def _put_left(self, step: Step, state: State, reason: str) -> None:
        self._say(f"{step.full_name} is {state}: {reason}")
        self._put(replace(step, state=state, reason=reason))

    def _end(self, step: Step, seconds: float) -> None:
        self._put(replace(step, state=State.DONE, seconds=seconds))
        left = len(self.of(*OPEN))
        rest = upgrading.estimate(self.steps, self._at_once)
        about = f", about {units.duration(rest)}" if left and rest is not None else ""
        self._say(f"{step.full_name} is ready after {units.duration(seconds)}; {left} left{about}")

    def _fail(self, step: Step, reason: str) -> None:
        """Raises PluginError: the other caches must not get the same problem."""
        self._put(replace(step, state=State.FAILED, reason=reason))
        before = f"To return it, run {step.command('upgrade', step.image)}. "
        back = before if images.is_fixed(step.image) and step.image != step.target else ""
        raise self._stopped(f"{step.full_name}: {reason}", ExitCode.NEGATIVE, step, back)

    def _stopped(
        self, reason: str, code: ExitCode = ExitCode.NEGATIVE, step: Step | None = None, back: str = ""
    ) -> PluginError:
        """The error that ends an upgrade. `step`: the cache at which it ends. `back`: a sentence with the way back."""
        others = f", or with --except {step.full_name} to leave it out" if step and self.of(State.CHANGE) else ""
        return PluginError(f"{reason.rstrip('.')}. {back}{self._left()}{others}".rstrip(), code)

    def _left(self) -> str:
        """What is not upgraded, and how to go on."""
        running = ", ".join(each.full_name for each in self.of(State.RUNNING))
        begun = f"The operator goes on with {running}. " if running else ""
        left = len(self.of(State.CHANGE))
        unchanged = f"{_caches(left)} unchanged. " if left else ""
        return f"{begun}{unchanged}To go on, run the same command again" if begun or unchanged else ""

    def _put(self, step: Step) -> None:
        self.steps = [step if each.full_name == step.full_name else each for each in self.steps]

    def _say(self, line: str) -> None:
        click.echo(one_line(line), file=self._file)


def _order(step: Step) -> tuple[int, str]:
    """Those that are changed first, then the others, by name."""
    return {State.RUNNING: 0, State.CHANGE: 1}.get(step.state, 2), step.full_name


def _show(steps: Sequence[Step]) -> None:
    """The table of what happens."""
    console = output.console()
    rows = [[each.full_name, each.image or units.UNKNOWN, str(each.pods), _what(each)] for each in steps]
    output.show(console, *output.tables(COLUMNS, rows, console.width, right=["PODS"], folded=["WHAT HAPPENS"]))


WHAT: Final[dict[State, Callable[[Step], str]]] = {
    State.CHANGE: lambda step: step.effect or "not known: admission does not say it",
    State.RUNNING: lambda _: "has the new image; its upgrade is not complete yet",
    State.DONE: lambda _: "has the new image",
}


def _what(step: Step) -> str:
    return WHAT[step.state](step) if step.state in WHAT else f"skipped: {step.reason}"


def _ask(found: _Upgrade) -> None:
    """Ask whether the caches may be upgraded. Raises PluginError if the user answers no, or there is no terminal."""
    steps = found.of(*OPEN)
    lost = [each for each in steps if each.items_kept is False]
    unknown = [each for each in steps if each.state is State.CHANGE and each.items_kept is None]
    losses = f" The items of {_caches(len(lost))} are lost." if lost else ""
    losses += f" For {_caches(len(unknown))} it is not known whether items are lost." if unknown else ""
    question = (
        f"Upgrade {_caches(len(steps))} with {_pods(sum(each.pods for each in steps))} to {found.target}?{losses}"
    )
    confirm(question, "Nothing is changed")


def _caches(number: int) -> str:
    return "1 cache" if number == 1 else f"{number} caches"


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
