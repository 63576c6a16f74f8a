"""What admission does with an AppService: its defaults, and what a change of it will do."""

from collections.abc import Iterator
from typing import Any

from memcached_api.appservice import APPSERVICE, AppServiceSpec, decode_spec, with_defaults
from memcached_api.appservice_ports import listening_ports
from memcached_api.kubernetes import stored
from memcached_webhooks.admission import Admission, Spec
from memcached_webhooks.review import Handler
from memcached_webhooks.warnings import about_restart, about_size, about_tag, amounts, readable


def handlers() -> dict[str, Handler]:
    """The function for each path."""
    return Admission(APPSERVICE, defaults, warnings).handlers()


def defaults(spec: Spec, _: Spec | None) -> dict[str, Any]:
    """Every default the spec lacks; the list of ports is written as a whole."""
    return {field: value for field, value in with_defaults(spec).items() if spec.get(field) != value}


def warnings(obj: Any, old: Any) -> list[str]:
    """Sentences about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = readable(decode_spec, old)
    if before is None:
        return list(about_tag(new.image))
    return [
        *about_size(new.size, before.size),
        *about_restart(_template(new), _template(before)),
        *_about_ports(new, before),
        *(about_tag(new.image) if new.image != before.image else ()),
    ]


def _about_ports(new: AppServiceSpec, old: AppServiceSpec) -> Iterator[str]:
    if old.ports and not new.ports:
        yield "spec.ports: without ports the Service goes, and with it its address and its node ports"


def _template(spec: AppServiceSpec) -> dict[str, object]:
    """What goes into the pods, in a form in which equal means equal for them."""
    return {
        "spec.image": spec.image,
        "spec.envs": [stored(env) for env in spec.envs],
        "spec.resources": amounts(spec.resources),
        "spec.ports": listening_ports(spec.ports),
    }
