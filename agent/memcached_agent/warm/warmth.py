"""Whether the memcached process of this pod is warm: the gate of the pod, and the samples of the process."""

import logging
from collections.abc import Callable, Iterator
from typing import Final

from memcached_agent.metrics import warm
from memcached_agent.metrics.exposition import Family
from memcached_agent.pod import record
from memcached_agent.pod.files import ProblemLog
from memcached_agent.pod.record import ProcessRecord, Seen
from memcached_agent.warm import decision, window
from memcached_agent.warm import gate as gates
from memcached_agent.warm.gate import Gate
from memcached_agent.warm.window import Samples, Window

log = logging.getLogger(__name__)


class Warmth:
    """A latch: once warm, warm until the process is replaced. `clock`: seconds of a clock that is never set.

    `gate`: None without a valid annotation. Then memcached is warm at once: a gate that is added later applies to the
    next process.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.gate: Gate | None = None
        self.problem: Final = ProblemLog()
        self._clock = clock
        self._samples: Samples = ()
        self._time = 0

    def configure(self, value: str | None) -> None:
        """Take over the value of the annotation; None: there is none."""
        self.gate, sentence = None, ""
        try:
            self.gate = None if value is None else gates.parse_gate(value)
        except ValueError as error:
            sentence = str(error)
        self.problem.report(sentence)

    def observed(self, before: ProcessRecord | None, process: Seen) -> ProcessRecord:
        """The record after a sample of the process."""
        if before is None or not record.is_same(before, process):
            self._samples = ()
        self._time = process.time
        self._samples = window.add(self._samples, window.Sample(self._clock(), process.gets))
        record_now = self._decided(record.follow(before, process))
        return decision.with_ratio(record_now, self._window())

    def obstacle(self, problem: str, current: ProcessRecord | None) -> str:
        """The reason why the pod is not ready, as one sentence. Empty if the gate does not prevent it.

        `problem`: why memcached does not reply. `current`: the record of the process that is connected now; None before
        its first sample.
        """
        if self.gate is None or problem:
            return problem if self.gate else ""
        if current is None:
            return "not warm yet: the connection to memcached is new"
        if current.warm:
            return ""
        return decision.sentence(self.gate, self._window(), self._time - current.began, current.before)

    def metrics(self, known: ProcessRecord | None, current: ProcessRecord | None) -> Iterator[Family]:
        """The metrics of the gate. `known`: the record of the last process that replied. `current`: as above."""
        is_warm = self.gate is None or (current is not None and current.warm)
        ratio = self._window().ratio if current else None
        target = decision.target(self.gate, known and known.before) if self.gate else None
        return warm.families(warm.WarmthSample(is_warm, ratio, target, known and known.took))

    def _window(self) -> Window:
        return window.window(self._samples)

    def _decided(self, known: ProcessRecord) -> ProcessRecord:
        """The record, which is warm from now on if the process is."""
        gate, minute, elapsed = self.gate, self._window(), self._time - known.began
        if known.warm or gate is None:
            return known._replace(warm=True)
        reason = decision.decide(gate, minute, elapsed, known.before)
        if reason is None:
            return known
        level = logging.WARNING if reason == "timeout" else logging.INFO
        log.log(level, "warm after %d s (%s): %d hits of %d gets", elapsed, reason, minute.hits, minute.gets)
        return known._replace(warm=True, took=max(0, min(elapsed, gate.timeout)))
