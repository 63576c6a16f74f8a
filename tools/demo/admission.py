"""What is let in, and what is made of it."""

import json

from demo import waiting
from demo.errors import StoryError
from demo.kubectl import typed
from demo.stage import Stage
from demo.waiting import Look

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
AWAY = "failed calling webhook"
READY_SECONDS = 30.0


def fills_in(stage: Stage) -> None:
    """An object that says nothing is completed; a dry run shows how, and stores nothing."""
    words = stage.kubectl.here("create", "--dry-run=server", "-o", "yaml", "-f", "-")
    _answers(stage, words)
    stage.told(words, BARE)
    spec = json.loads(stage.kubectl.must([*words[:-4], "-o", "json", "-f", "-"], BARE).out)["spec"]
    fault = unfilled(spec)
    if fault:
        raise StoryError(f"admission left {fault}")
    stage.screen.say(f"Filled in: size {spec['size']}, containerPort {spec['containerPort']}, and the image")
    stage.screen.say(f"{spec['image']}, which a later release of the operator will not change.")


def _answers(stage: Stage, words: list[str]) -> None:
    """Right after the deployment the API server may still need a moment to trust the webhook."""

    def look() -> Look:
        done = stage.kubectl.run(words, BARE)
        return Look(AWAY not in done.err, done.complaint)

    waiting.wait(stage.screen, look, "an answer of the webhook", READY_SECONDS)


def unfilled(spec: dict[str, object]) -> str:
    """What admission should have filled in, but did not: a clause, or nothing."""
    if spec.get("size") != 1:
        return f"size as {spec.get('size')} instead of 1"
    if spec.get("containerPort") != 11211:
        return f"containerPort as {spec.get('containerPort')} instead of 11211"
    return "" if spec.get("image") else "the image out"


def refuses(stage: Stage) -> None:
    """A cache without pods is refused with the remedy, and nothing is stored."""
    words = stage.kubectl.here("apply", "-f", "-")
    stage.refused(words, REMEDY, BAD)
    if stage.kubectl.read("memcached", "too-small") is not None:
        raise StoryError(f"`{typed(words)}` was refused, but the object is there")
