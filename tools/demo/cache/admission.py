"""Admission sets defaults and denies invalid objects."""

import json

from demo import waiting
from demo.errors import DemoError
from demo.kubectl import typed
from demo.stage import Stage
from demo.waiting import Progress

BAD = """\
apiVersion: cache.example.com/v1
kind: Memcached
metadata:
  name: too-small
spec:
  size: 0
"""
BARE = """\
apiVersion: cache.example.com/v1
kind: Memcached
metadata:
  name: bare
"""
REMEDY = "must be at least 1"
UNREACHABLE = "failed calling webhook"
READY_SECONDS = 30.0


def sets_defaults(stage: Stage) -> None:
    """A Memcached without a spec gets defaults; a dry run shows them and stores nothing."""
    words = stage.kubectl.here("create", "--dry-run=server", "-o", "yaml", "-f", "-")
    _wait_for_webhook(stage, words)
    stage.show(words, BARE)
    spec = json.loads(stage.kubectl.must([*words[:-4], "-o", "json", "-f", "-"], BARE).out)["spec"]
    if problem := wrong_default(spec):
        raise DemoError(f"admission set {problem}")
    stage.screen.say(f"Defaults: size {spec['size']}, containerPort {spec['containerPort']}, and the image")
    stage.screen.say(f"{spec['image']}. A later release of the operator does not change this image.")


def _wait_for_webhook(stage: Stage, words: list[str]) -> None:
    """Right after the deployment, the API server may not trust the webhook's certificate yet."""

    def check() -> Progress:
        done = stage.kubectl.run(words, BARE)
        return Progress(UNREACHABLE not in done.err, done.complaint)

    waiting.wait(stage.screen, check, "the webhook", READY_SECONDS)


def wrong_default(spec: dict[str, object]) -> str:
    """A default that admission should have set differently: a clause, or empty."""
    if spec.get("size") != 1:
        return f"size to {spec.get('size')} instead of 1"
    if spec.get("containerPort") != 11211:
        return f"containerPort to {spec.get('containerPort')} instead of 11211"
    return "" if spec.get("image") else "no image"


def denies(stage: Stage) -> None:
    """A Memcached without pods is denied with the remedy, and nothing is stored."""
    words = stage.kubectl.here("apply", "-f", "-")
    stage.show_denied(words, REMEDY, BAD)
    if stage.kubectl.read("memcached", "too-small") is not None:
        raise DemoError(f"`{typed(words)}` was denied, but the object exists")
