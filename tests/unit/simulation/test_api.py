"""The simulated API server, as far as tests/integration/test_simulated_api.py does not compare it with a real one."""

import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from memcached_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SECRETS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from simulation.api import field_sets
from simulation.api.access import Access, Attributes
from simulation.api.errors import StatusError
from simulation.api.kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, ROLE_BINDINGS, ROLES
from simulation.api.merging import merge
from simulation.api.patches import json_patch, strategic_merge_patch
from simulation.api.schema import SET, keyed, struct
from simulation.api.server import ApiServer, Request, Subscription
from simulation.api.storage import Storage

SPACE = "test"
MERGE = "application/merge-patch+json"
LISTS = struct({"items": keyed("name"), "set": SET})


class Server(ApiServer):
    """An API server with one namespace, and requests with Python values."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(lambda: datetime(2030, 1, 1, tzinfo=UTC), random.Random(seed))  # noqa: S311 - no secret
        self.send("POST", NAMESPACES.path(), {"metadata": {"name": SPACE}})

    def send(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> tuple[int, Any]:
        """Send a request; the status and the decoded body."""
        text = b"" if body is None else json.dumps(body).encode()
        reply = self.handle(Request(method, path, query, content_type, text))
        return reply.status, json.loads(reply.body)

    def create(self, name: str, resource: Resource = CONFIG_MAPS, **content: Any) -> Object:
        """Create an object."""
        labels = content.pop("labels", {})
        meta = {"name": name, "labels": labels} if labels else {"name": name}
        status, obj = self.send("POST", resource.path(SPACE), {"metadata": meta, **content}, fieldManager="user")
        assert status == 201, obj
        return obj

    def follow(self, version: str = "", **query: str) -> list[Object]:
        """Watch ConfigMaps from now on, or from a version; the list grows with the events."""
        events: list[Object] = []
        query = {"watch": "true", "resourceVersion": version or str(self.version), **query}
        request = Request("GET", CONFIG_MAPS.path(SPACE), query)
        assert isinstance(self.watch(request, lambda line: events.append(json.loads(line))), Subscription)
        return events


def types(events: list[Object]) -> list[str]:
    """Each event with the name of its object."""
    return [f"{event['type']} {event['object']['metadata'].get('name', '')}".strip() for event in events]


def test_a_set_in_json() -> None:
    text: Object = {"f:a": {}, "f:b": {".": {}, 'k:{"name":"x"}': {"f:c": {}}, 'v:"y"': {}}}
    found = field_sets.decoded(text)
    assert field_sets.encoded(found) == text
    assert list(field_sets.paths(found)) == [".a", ".b", '.b[="y"]', '.b[name="x"].c']


@pytest.mark.parametrize(
    ("live", "applied", "want"),
    [("abc", "b", "abc"), ("abc", "ca", "bca"), ("ab", "xb", "axb"), ("", "ba", "ba"), ("abcd", "dxb", "acdxb")],
)
def test_merged_lists_keep_their_order(live: str, applied: str, want: str) -> None:
    def named(names: str) -> Object:
        return {"items": [{"name": name} for name in names], "set": list(names)}

    assert merge(LISTS, named(live), named(applied)) == named(want)


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        ({"op": "test", "path": "/a/0", "value": 1}, {"a": [1, 2], "b/c": 3}),
        ({"op": "test", "path": "/a/0", "value": 2}, None),
        ({"op": "test", "path": "/a/2", "value": 2}, None),
        ({"op": "add", "path": "/a/1", "value": 5}, {"a": [1, 5, 2], "b/c": 3}),
        ({"op": "add", "path": "/a/-", "value": 5}, {"a": [1, 2, 5], "b/c": 3}),
        ({"op": "add", "path": "/a/4", "value": 5}, None),
        ({"op": "add", "path": "/x/y", "value": 5}, None),
        ({"op": "replace", "path": "/b~1c", "value": None}, {"a": [1, 2], "b/c": None}),
        ({"op": "replace", "path": "/c", "value": 1}, None),
        ({"op": "remove", "path": "/a/0"}, {"a": [2], "b/c": 3}),
        ({"op": "remove", "path": "/c"}, None),
    ],
)
def test_json_patches(operation: Object, want: Object | None) -> None:
    obj = {"a": [1, 2], "b/c": 3}
    if want is None:
        with pytest.raises(StatusError, match="the server rejected our request") as error:
            json_patch(obj, [operation])
        assert error.value.code == 422
    else:
        assert json_patch(obj, [operation]) == want
    assert obj == {"a": [1, 2], "b/c": 3}


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        ({"env": [{"name": "b", "value": "2"}]}, {"env": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}),
        ({"env": [{"name": "a", "$patch": "delete"}]}, {"env": [{"name": "b"}]}),
        ({"env": [{"name": "c"}]}, {"env": [{"name": "c"}, {"name": "a", "value": "1"}, {"name": "b"}]}),
        ({"env": None}, {}),
        ({"$patch": "replace", "x": 1}, {"x": 1}),
    ],
)
def test_strategic_merge_patches(patch: Object, want: Object) -> None:
    obj = {"env": [{"name": "a", "value": "1"}, {"name": "b"}]}
    assert strategic_merge_patch(struct({"env": keyed("name")}), obj, patch) == want


def test_writes_without_a_change_keep_the_version() -> None:
    server = Server()
    obj = server.create("c", data={"a": "1"})
    events = server.follow()
    _, same = server.send("PATCH", CONFIG_MAPS.path(SPACE, "c"), {"data": {"a": "1"}}, MERGE, fieldManager="user")
    assert (same, server.put(obj), events) == (obj, obj, [])


def test_a_status_is_not_written_to_a_deleted_object() -> None:
    server = Server()
    obj = server.create("x", MEMCACHEDS, spec={"image": "a"})
    server.remove(Key(MEMCACHEDS, SPACE, "x"))
    with pytest.raises(StatusError, match="not found"):
        server.put({**obj, "status": {}}, "status")


def test_stored_objects_are_never_changed() -> None:
    server = Server()
    server.create("d", DEPLOYMENTS, **workload())
    key = Key(DEPLOYMENTS, SPACE, "d")
    before = server.objects[key]
    text = json.dumps(before)
    server.send("PATCH", DEPLOYMENTS.path(SPACE, "d"), {"spec": {"replicas": 3}}, MERGE)
    server.put({**server.objects[key], "status": {"replicas": 3}}, "status")
    assert json.dumps(before) == text
    assert server.objects[key]["metadata"]["generation"] == 2


def workload() -> Object:
    """The content of a Deployment."""
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "d"}]}}
    return {"spec": {"selector": {"matchLabels": labels}, "template": template}}


def test_watches_send_the_history_and_then_each_change() -> None:
    server = Server()
    first = server.create("a")
    server.create("b")
    events = server.follow(first["metadata"]["resourceVersion"], allowWatchBookmarks="true")
    server.create("c")
    server.send("DELETE", CONFIG_MAPS.path(SPACE, "a"))
    server.create("s", SECRETS)
    server.bookmark()
    assert types(events) == ["ADDED b", "ADDED c", "DELETED a", "BOOKMARK"]
    assert events[-1]["object"]["metadata"]["resourceVersion"] == str(server.version)


def test_an_object_that_is_not_selected_any_more_is_deleted_for_a_watch() -> None:
    server = Server()
    server.create("a", labels={"x": "1"})
    events = server.follow(labelSelector="x=1")
    for value in ("2", "1"):
        server.send("PATCH", CONFIG_MAPS.path(SPACE, "a"), {"metadata": {"labels": {"x": value}}}, MERGE)
    assert types(events) == ["DELETED a", "ADDED a"]
    assert events[0]["object"]["metadata"]["labels"] == {"x": "1"}


def test_a_closed_watch_sends_nothing() -> None:
    server = Server()
    lines: list[bytes] = []
    watch = server.watch(Request("GET", CONFIG_MAPS.path(SPACE), {"resourceVersion": "100"}), lines.append)
    assert isinstance(watch, Subscription)
    watch.close()
    server.create("a")
    assert lines == []


def test_compacted_versions_are_expired() -> None:
    server = Server()
    first = server.create("a")
    server.create("b")
    kept = server.follow()
    server.compact()
    events = server.follow(first["metadata"]["resourceVersion"])
    assert [(event["type"], event["object"]["code"], event["object"]["reason"]) for event in events] == [
        ("ERROR", 410, "Expired")
    ]
    server.create("c")
    assert types(kept) == ["ADDED c"]


def test_pages_of_a_list_have_one_version() -> None:
    server = Server()
    for name in "abcd":
        server.create(name)
    _, page = server.send("GET", CONFIG_MAPS.path(SPACE), limit="2")
    server.send("DELETE", CONFIG_MAPS.path(SPACE, "c"))
    server.create("cc")
    token = page["metadata"]["continue"]
    _, rest = server.send("GET", CONFIG_MAPS.path(SPACE), **{"limit": "5", "continue": token})
    assert [obj["metadata"]["name"] for obj in page["items"] + rest["items"]] == list("abcd")
    assert rest["metadata"] == {"resourceVersion": page["metadata"]["resourceVersion"]}
    server.compact()
    status, error = server.send("GET", CONFIG_MAPS.path(SPACE), **{"limit": "5", "continue": token})
    assert (status, error["reason"]) == (410, "Expired")
    _, rest = server.send("GET", CONFIG_MAPS.path(SPACE), **{"continue": error["metadata"]["continue"]})
    assert [obj["metadata"]["name"] for obj in rest["items"]] == ["cc", "d"]


def test_listeners_get_the_changes_in_order_even_if_one_writes() -> None:
    server = Server()
    seen: list[str] = []

    def second(change: str, obj: Object) -> None:
        if change == "ADDED" and obj["metadata"]["name"] == "a":
            server.create("b")

    server.subscribe(second)
    server.subscribe(lambda change, obj: seen.append(f"{change} {obj['metadata']['name']}"))
    events = server.follow()
    server.create("a")
    server.remove(Key(CONFIG_MAPS, SPACE, "a"))
    server.remove(Key(CONFIG_MAPS, SPACE, "a"))
    assert seen == types(events) == ["ADDED a", "ADDED b", "DELETED a"]


def test_nothing_is_created_in_a_terminating_namespace() -> None:
    server = Server()
    server.send("DELETE", NAMESPACES.path(None, SPACE))
    status, error = server.send("POST", CONFIG_MAPS.path(SPACE), {"metadata": {"name": "c"}})
    assert (status, error["reason"]) == (403, "Forbidden")
    assert error["message"] == (
        'configmaps "c" is forbidden: unable to create new content in namespace test because it is being terminated'
    )
    assert error["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace test is being terminated",
            "field": "metadata.namespace",
        }
    ]


ACCOUNT = f"system:serviceaccount:{SPACE}:operator"


@pytest.mark.parametrize(
    ("user", "wanted", "allowed"),
    [
        (ACCOUNT, Attributes("get", "apps", "deployments", "", SPACE), True),
        (ACCOUNT, Attributes("get", "apps", "deployments", "", "other"), False),
        (ACCOUNT, Attributes("get", "apps", "deployments", "status", SPACE), False),
        (ACCOUNT, Attributes("patch", "apps", "deployments", "", SPACE), False),
        (ACCOUNT, Attributes("get", "", "secrets", "", SPACE, "one"), True),
        (ACCOUNT, Attributes("get", "", "secrets", "", SPACE, "two"), False),
        ("someone", Attributes("get", "apps", "deployments", "", SPACE), False),
        ("someone", Attributes("list", "", "nodes"), True),
        ("someone", Attributes("list", "", "nodes", "", SPACE), True),
    ],
)
def test_permissions(user: str, wanted: Attributes, allowed: bool) -> None:
    storage = Storage()

    def store(resource: Resource, namespace: str, **content: Any) -> None:
        storage.put(Key(resource, namespace, "r"), {"metadata": {"name": "r"}, **content})

    rules = [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["*"]},
    ]
    store(ROLES, SPACE, rules=rules)
    subject = {"kind": "ServiceAccount", "name": "operator", "namespace": SPACE}
    store(ROLE_BINDINGS, SPACE, roleRef={"kind": "Role", "name": "r"}, subjects=[subject])
    store(CLUSTER_ROLES, "", rules=[{"apiGroups": ["*"], "resources": ["nodes"], "verbs": ["list"]}])
    everyone = {"kind": "Group", "name": "system:authenticated"}
    store(CLUSTER_ROLE_BINDINGS, "", roleRef={"kind": "ClusterRole", "name": "r"}, subjects=[everyone])
    assert Access(storage).allows(user, wanted) is allowed


def test_discovery() -> None:
    server = Server()
    _, resources = server.send("GET", "/api/v1")
    assert {"pods", "pods/resize"} <= {each["name"] for each in resources["resources"]}
    assert server.send("GET", "/version")[1]["minor"] == "35"


def test_runs_with_the_same_seed_are_equal() -> None:
    def run(seed: int) -> Mapping[Key, Object]:
        server = Server(seed)
        server.create("d", DEPLOYMENTS, **workload())
        server.send("POST", CONFIG_MAPS.path(SPACE), {"metadata": {"generateName": "c-"}})
        return server.objects

    assert json.dumps(list(run(1).values())) == json.dumps(list(run(1).values()))
    assert run(1) != run(2)
