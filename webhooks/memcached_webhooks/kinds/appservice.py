"""Admission of AppService: defaults and warnings."""

from collections.abc import Iterator
from typing import Any

from memcached_api.appservice.types import APPSERVICE, DEFAULT_SIZE, AppServiceSpec, decode_spec
from memcached_api.images import Images
from memcached_webhooks.admission import Admission
from memcached_webhooks.stored import Spec, Stored
from memcached_webhooks.warnings import decode_valid, image_warnings, restart_warnings


def admission(_: Images) -> Admission:
    """The admission of AppService, which has no default images."""
    return Admission(APPSERVICE, defaults, warnings)


def defaults(spec: Spec, _: Stored | None) -> dict[str, Any]:
    """The default size. Ports get none: GitOps tools compare a list as a whole, so they would report a difference."""
    return {"size": DEFAULT_SIZE} if spec.get("size") is None else {}


def warnings(obj: Any, old: Any) -> list[str]:
    """Warnings about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = decode_valid(decode_spec, old)
    if before is None:
        return list(image_warnings(new.image))
    return [
        *_size_warnings(new.size, before.size),
        *restart_warnings(APPSERVICE.changed_fields(new, before), min(new.size, before.size)),
        *_port_warnings(new, before),
        *(image_warnings(new.image) if new.image != before.image else ()),
    ]


def _size_warnings(new: int, old: int) -> Iterator[str]:
    if new < old:
        yield f"{old - new} of {old} pods will be deleted"


def _port_warnings(new: AppServiceSpec, old: AppServiceSpec) -> Iterator[str]:
    if old.ports and not new.ports:
        yield "spec.ports: without ports, the Service is deleted, and its cluster IP and node ports are released"
