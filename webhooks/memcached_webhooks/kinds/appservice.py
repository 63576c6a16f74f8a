"""Admission of AppService: defaults and warnings."""

from collections.abc import Iterator
from typing import Any

from memcached_api.appservice.ports import listening_ports
from memcached_api.appservice.types import APPSERVICE, AppServiceSpec, decode_spec, with_defaults
from memcached_api.kubernetes import canonical_env
from memcached_webhooks.admission import Admission, Spec
from memcached_webhooks.warnings import (
    comparable_resources,
    decode_valid,
    image_warnings,
    restart_warnings,
    size_warnings,
)


def admission(_: str) -> Admission:
    """The admission of AppService, which does not use the default image of memcached."""
    return Admission(APPSERVICE, defaults, warnings)


def defaults(spec: Spec, _: Spec | None) -> dict[str, Any]:
    """Every missing default. The list of ports is set as a whole."""
    return {field: value for field, value in with_defaults(spec).items() if spec.get(field) != value}


def warnings(obj: Any, old: Any) -> list[str]:
    """Warnings about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = decode_valid(decode_spec, old)
    if before is None:
        return list(image_warnings(new.image))
    return [
        *size_warnings(new.size, before.size),
        *restart_warnings(_template(new), _template(before)),
        *_port_warnings(new, before),
        *(image_warnings(new.image) if new.image != before.image else ()),
    ]


def _port_warnings(new: AppServiceSpec, old: AppServiceSpec) -> Iterator[str]:
    if old.ports and not new.ports:
        yield "spec.ports: without ports, the Service is deleted with its cluster IP and node ports"


def _template(spec: AppServiceSpec) -> dict[str, object]:
    """The fields that affect the pod template, normalized for comparison."""
    return {
        "spec.image": spec.image,
        "spec.envs": [canonical_env(env) for env in spec.envs],
        "spec.resources": comparable_resources(spec.resources),
        "spec.ports": listening_ports(spec.ports),
    }
