"""The annotations of the operator: their keys, who writes them, and who reads them.

Users cannot set them in a spec: rules reject keys with OWN_PREFIX. Users with rights on a child can change those on it,
so every reader checks the value. The agent imports nothing of this package, and has its own copies of the keys that it
reads.
"""

from typing import Final

OWN_PREFIX: Final = "memcached-operator.example.com/"
"""The prefix of the operator's own annotations and labels. The rules of specs reject it, and the cache keeps the
annotations of pods that have it."""

INTENT_ANNOTATION: Final = f"{OWN_PREFIX}intent"
"""On every child: a digest of the last applied intent. It detects the *removal* of a field from the intent, which a
comparison of values does not. The operator writes it with each apply, and reads it in each reconcile."""

RETRY_ANNOTATION: Final = f"{OWN_PREFIX}retried-at"
"""On a workload whose pods are missing: the time at which its controller was last made to try again. The operator
writes it and never reads it: the change of the workload is the purpose.

The controllers of Kubernetes double their delay up to 17 min, but try again at once after any change of the workload. A
Deployment's controller copies annotations to the ReplicaSet.
"""

PINNED_IMAGE_ANNOTATION: Final = f"{OWN_PREFIX}default-image"
PINNED_AGENT_ANNOTATION: Final = f"{OWN_PREFIX}default-agent-image"
"""On a workload whose object has no `spec.image` or `spec.agent.image`, because the webhook was unavailable. The value
is the default image at that time. The operator writes and reads it, so that a later release does not restart the cache.
"""

PAUSED_ANNOTATION: Final = f"{OWN_PREFIX}paused"
"""On a StatefulSet whose pod template is not changed now: whether the spec has another one, which is written after the
pause. The operator writes it, and reads it for the status and to find the template that it keeps."""

TEMPLATE_ANNOTATION: Final = f"{OWN_PREFIX}template"
"""On a StatefulSet: a digest of the pod template that the operator applied. The operator writes it, and reads it during
a pause, to see whether the spec asks for another template."""

HELD_ANNOTATION: Final = f"{OWN_PREFIX}held-template"
"""On a StatefulSet whose pod template is kept during a pause: that template as JSON, after its digest. The operator
writes it, and reads it to restore the template if another client changes that."""

ORIGIN_ANNOTATION: Final = f"{OWN_PREFIX}created-from"
"""On a pod template of `identity: Stable`, and so on each of its pods: the template as a digest, with its images and
resources, as JSON. The operator writes it, and reads it to find what an update in place must change in a pod."""

RECORD_ANNOTATION: Final = f"{OWN_PREFIX}update"
"""On a pod that is updated in place: the record of the update, as JSON. The operator writes, reads and removes it."""

WARM_UP_ANNOTATION: Final = f"{OWN_PREFIX}warm-up"
"""On a pod that is ready only when it is warm. The operator writes its value, such as
`hitRatio=80,timeout=900,minRequests=100`; times are in seconds. The agent in the pod reads it, and the operator reads
the timeout from the pod template."""

MEMORY_ANNOTATION: Final = f"{OWN_PREFIX}memory"
"""On a pod: the memory for items in MiB. The operator writes it. The agent reads it, and raises the memory of memcached
to it."""

ITEM_AGE_ANNOTATION: Final = f"{OWN_PREFIX}item-age"
"""On a pod with items on a disk: the seconds after which an item moves there; 4294967295: never. The operator writes
it. The agent reads it, and sets it in memcached."""

ARGS_ANNOTATION: Final = f"{OWN_PREFIX}args"
"""On a pod: the arguments of memcached, which can change while the pod runs. None contains a space. The operator writes
it. The start script of the container and the agent read it, the agent to restart memcached after a change."""

MOVE_ANNOTATION: Final = f"{OWN_PREFIX}move"
MOVE_TIMES_ANNOTATION: Final = f"{OWN_PREFIX}move-times"
"""On the StatefulSet of a Memcached with `spec.scaling.warm`: the state of its change of size, and its times, as JSON.
The operator writes and reads both. They are the only record of the phase. The times are no part of the intent: a policy
that removes them must not cause a write for each of them."""

RING_ANNOTATION: Final = f"{OWN_PREFIX}ring"
"""On a pod template of a MemcachedProxy, and so on each of its pods: the Memcached and the number of its slots in the
routes, as `NAME/UID/SERVERS`; during a change of size, `NAME/UID/FROM>TO/PHASE/CHANGE`. The operator writes it, and
reads it to find the slots that are in use."""

ROUTES_ANNOTATION: Final = f"{OWN_PREFIX}routes"
"""On a pod template of a MemcachedProxy, and so on each of its pods: the routes of memcached's proxy, in Lua. The
operator writes it, the kubelet mounts it as a file, and memcached reads that when it starts."""

HANDLER_ANNOTATION: Final = f"{OWN_PREFIX}handler"
"""On a pod template of a MemcachedProxy during a change of size, and so on each of its pods: the handler of the routes,
in Lua. The operator writes it, the kubelet mounts it as a file, and memcached reads that when it starts."""

REVOKE_ANNOTATION: Final = f"{OWN_PREFIX}revoke-other-authorities"
"""On the Secret of the webhook. An administrator sets it to `true`. The operator's next check then removes every other
CA from the CA bundles, and then the annotation."""
