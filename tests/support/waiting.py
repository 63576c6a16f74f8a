"""How long tests wait: each limit is four times what the step takes on a quiet machine with 2 cores.

A test waits for a condition; these limits only end tests that would fail. No test asserts that something is faster.
"""

BUSY = 4
"""A busy machine may need this many times the usual time."""

REQUEST = BUSY * 5.0
"""Seconds for one request, or for one step of it."""
STEP = BUSY * 15.0
"""Seconds for a reaction: of the operator, of kube-proxy, or of a program that starts."""
READY = BUSY * 30.0
"""Seconds until the pods of an object are ready, or a failure of them is reported."""
ROLLOUT = BUSY * 60.0
"""Seconds until several pods are replaced or restarted, one after the other."""

COMMAND = BUSY * 120.0
"""Seconds for one command, such as `make deploy`."""
BUILD = BUSY * 600.0
"""Seconds for a command that may compile programs first."""

SECRET_REPORTED = BUSY * 40.0
"""Seconds until a missing Secret is reported. The operator reads the Events of a pod 10 s after it is scheduled, and
then once per minute, because the kubelet of a busy machine may not have written any."""
MOUNTED = 122.0 + READY
"""Seconds until a Secret that was missing is mounted and its pod is ready: the kubelet retries within 2 min 2 s."""
RELOADED = 130.0 + STEP
"""Seconds until a changed Secret is in use: 120 s for the kubelet, 10 s for the agent, on a quiet machine."""

TAKEOVER = 22.0 + STEP
"""Seconds until a standby replaces a leader that was killed: the lease lasts 15 s, retries come every 2 s."""

QUIET = 3.0
"""Seconds without a write after which no more is expected."""
