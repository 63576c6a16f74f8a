"""Remedies for what the scheduler says about a pod that no node takes."""

from kubectl_memcached.model.effects import SCHEDULING
from kubectl_memcached.model.losses import Sentence


def remedy(message: str) -> Sentence:
    """The actions for a message of the scheduler, as the end of a sentence. Empty if none is known."""
    found: list[tuple[str, dict[str, str]]] = []
    for part, each in SCHEDULING.items():  # a part that contains another one comes before it
        if part in message:
            found.append(each)
            message = message.replace(part, "")
    changes = tuple(change for _, changed in found for change in changed.items())
    return Sentence(f". {_capitalized('; or '.join(text for text, _ in found))}" if found else "", changes)


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
