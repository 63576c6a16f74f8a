# The tests, and what measures: a part of the Makefile. See CONTRIBUTING.md.
##@ Test
# Tests that run at the same time; they mostly wait for pods.
WORKERS ?= 4
# More arguments for pytest, such as ARGS="-k 'scale or drift' -x"; paths, such as tests/unit/kube, replace the folder of
# a suite. No failed test runs again then. The target bench has its own program.
export ARGS
# Of a test that fails first and passes when it runs once more: report, or fail as nightly.
FLAKY ?= report
export FLAKY
# Where no pods can run, tests that need them fail; with `optional`, which `make test` sets, they are skipped.
export PODS
# The kubectl of the tests, such as 1.30.0; by default that of the cluster's version.
export KUBECTL_VERSION
export BUILT
unexport PYTHONPATH
# A suite is a folder of tests/ and marks: 10 failures stop it, and its results are in build/tests. A suite of each change
# is ended after LIMIT_OF_SUITE minutes, and names what has run for long. The others can take hours.
LIMIT_OF_SUITE ?= 25
GATED := unit integration smoke pods disruptive simulation faults-gate faults-alone olm
ended = $(if $(filter $(GATED),$(@:test-%=%)),timeout --foreground --signal=TERM --kill-after=60 $(LIMIT_OF_SUITE)m)
# Seconds for a test: in the suites below, fixtures compile programs, or a test takes minutes by itself.
export TEST_LIMIT = $(if $(filter unit integration smoke pods disruptive simulation,$(@:test-%=%)),,7200)
PYTEST = SUITE=$(@:test-%=%)$(ROUND) $(ended) $(PYTHON) -m pytest --maxfail=10 --durations=10 --junit-xml=build/tests/$(@:test-%=%)$(ROUND).xml
ONCE_MORE = $(if $(ARGS),,--reruns=1 --rerun-show-tracebacks --rerun-except=OverdueError)
PARALLEL = --numprocesses=$(WORKERS) --dist=worksteal $(ONCE_MORE)
# Tests that wait for nothing: more processes would only import and prepare more.
BUSY = --numprocesses=$$(nproc) --dist=worksteal $(ONCE_MORE)
# The folder, or the paths in ARGS that are in it; of other folders, no test.
in = $(if $(filter tests/%,$(ARGS)),$(or $(filter $(1)%,$(ARGS)),$(1) --deselect=$(1)) $(filter-out tests/%,$(ARGS)),$(1) $(ARGS))
# One suite that fails does not stop the others.
each = SEVERAL=yes PODS=$${PODS:-optional} $(2) $(MAKE) --keep-going $(addprefix test-,$(1))
run = rm -f $(patsubst %,build/tests/%.json,$(1)); $(call each,$(1)) || code=$$?
log = build/tests/$(firstword $(1)).log
beside = rm -f $(log:.log=.json); $(call each,$(1),nice -n $(3)) >$(log) 2>&1 & \
	trap "kill $$! 2>/dev/null && wait $$! || true" EXIT; $(call run,$(2)); wait $$! || code=$$?; trap - EXIT; \
	tail -n 60 $(log)
sum = $(PROJECT) results $(1) || code=1; exit $${code:-0}
# A fault case is evidence even if it fails once, and mostly waits.
CASES = --numprocesses=$$((2 * $(WORKERS))) --dist=worksteal
OLM_IMAGES = IMG="$(IMG)" AGENT_IMG="$(AGENT_IMG)"
TEST := unit integration smoke

.PHONY: test test-all test-rest test-unit test-simulation test-walks test-integration test-e2e test-smoke test-pods test-disruptive test-olm test-olm-programs
.PHONY: test-kubectl test-kubectl-messages test-kubectl-pages test-clients test-faults test-faults-gate test-faults-alone test-servers test-integration-nightly test-e2e-nightly test-olm-modes test-release test-chart
.PHONY: test-certmanager test-dashboards test-monitoring test-incidents test-mutants test-repeat test-corners test-soak coverage bench
.PHONY: programs built deployed
programs:
	@$(CLUSTER_TOOL) build
built: venv
	@$(if $(BUILT),,$(PROJECT) build $(IMAGE_OPTIONS) --for-pods)
deployed: built
	@$(PROJECT) push IMG "$(IMG)" --into-cluster --for-pods
	@$(PROJECT) push AGENT_IMG "$(AGENT_IMG)" --into-cluster --for-pods
	@$(PROJECT) deploy $(IMAGES) --overlay="$(OVERLAY)" --for-pods

test: venv ## Run the unit and integration tests and, with real pods, each promise of the README.
	@rm -rf build/tests; $(call run,$(TEST)); $(call sum,$(TEST))

test-all: venv ## Run all tests but those that run nightly.
	@rm -rf build/tests; $(call run,$(TEST)); $(MAKE) test-rest || code=$$?; exit $${code:-0}

# Suites that do not share the cluster run beside others, at a low priority. Some fault cases measure the time of a reply,
# so nothing runs beside those. OLM is compiled while the disruptive tests wait, and starts before the fault cases end.
test-rest: venv
	@mkdir -p build/tests; $(MAKE) built || code=$$?; export BUILT=yes; \
	$(call beside,simulation olm-programs,pods disruptive,10); $(call beside,olm,faults-gate,5); $(call run,faults-alone); \
	$(call sum,pods disruptive faults-gate faults-alone simulation olm)

test-unit: venv ## Run the tests that need no cluster.
	@$(CLUSTER_TOOL) bin >/dev/null; $(PYTEST) $(PARALLEL) -q $(call in,tests/unit)

test-simulation: venv ## Run each fault case against the controller, with an API server in memory and a virtual clock.
	@$(PYTEST) $(BUSY) -q $(call in,tests/simulation)

test-walks: venv ## Walk the operator through random events in the simulation, for half an hour or WALKS_SECONDS.
	@WALKS_SEED=$${WALKS_SEED:-$$((RANDOM * RANDOM))} WALKS_SECONDS=$(or $(WALKS_SECONDS),1800) $(PYTEST) --numprocesses=$(WORKERS) $(call in,tests/simulation/test_walks.py)

test-integration: venv programs ## Run the tests that need an API server: of KUBE_VERSION, or of the cluster's version.
	@env -u KUBECONFIG $(PYTEST) $(PARALLEL) -m "not nightly" $(call in,tests/integration)

test-e2e: test-smoke test-pods test-disruptive ## Deploy the operator and run its tests with real pods.
test-smoke: deployed
	@$(PYTEST) $(PARALLEL) -m smoke $(call in,tests/e2e)
test-pods: deployed
	@$(PYTEST) $(PARALLEL) -m "not smoke and not disruptive and not nightly" $(call in,tests/e2e)
test-disruptive: deployed
	@$(PYTEST) $(ONCE_MORE) -m disruptive $(call in,tests/e2e)

test-olm: built ## Run the tests with the real OLM and real pods, in a separate cluster that is removed afterwards.
	@$(OLM_IMAGES) $(PYTEST) $(ONCE_MORE) -m "not modes" $(call in,tests/olm)
test-olm-programs: venv
	-@$(if $(ARGS),,exec env $(TOOLS) olm programs --running >/dev/null)

test-clients: deployed ## Run client libraries of six languages against real pods; needs node, npm, javac and mvn.
	@$(PYTEST) $(call in,tests/clients)

# Nightly, and `test-mutants` before tests are removed (CONTRIBUTING.md).
test-servers: venv programs
	@env -u KUBECONFIG $(PYTEST) $(PARALLEL) -m server $(call in,tests/integration)
test-integration-nightly: venv programs
	@env -u KUBECONFIG $(PYTEST) $(PARALLEL) -m nightly $(call in,tests/integration)
test-e2e-nightly: deployed
	@$(PYTEST) $(PARALLEL) -m nightly $(call in,tests/e2e)
# With KUBECTL_VERSION, one of `cluster.versions.SUPPORTED`.
test-kubectl: test-kubectl-messages test-kubectl-pages
test-kubectl-messages: venv programs
	@env -u KUBECONFIG $(PYTEST) $(PARALLEL) -m "kubectl and not nightly" $(call in,tests/integration)
test-kubectl-pages: deployed
	@$(PYTEST) $(PARALLEL) -m kubectl $(call in,tests/e2e)
test-olm-modes: built
	@$(OLM_IMAGES) $(PYTEST) $(ONCE_MORE) -m modes $(call in,tests/olm)
test-incidents: deployed
	@$(PYTEST) $(ONCE_MORE) $(call in,tests/incidents)
test-release test-chart test-certmanager test-dashboards test-monitoring test-corners: test-%: venv
	@env -u KUBECONFIG $(PYTEST) $(ONCE_MORE) $(call in,tests/$(or $(FOLDER_$*),$*))
FOLDER_release := releases
FOLDER_dashboards := grafana
test-mutants: venv
	@mkdir -p build; $(ALL_TOOLS) mutation --out=build/mutants.jsonl $(ARGS)
test-repeat: venv
	@for number in $$(seq $(or $(TIMES),20)); do [ $$SECONDS -lt $$((60 * $(or $(MINUTES),300))) ] || break; \
	  $(MAKE) --keep-going ROUND=-$$number $(addprefix test-,$(or $(NAMES),integration smoke pods)) || code=1; done; exit $${code:-0}

test-faults: venv programs ## Run the fault tests on a separate control plane: all, or ARGS="-k 'watch/ or drift/'".
	@env -u KUBECONFIG $(PYTEST) $(CASES) $(call in,tests/faults)
test-faults-gate: venv programs
	@env -u KUBECONFIG $(PYTEST) $(CASES) -m "gate and not alone" $(call in,tests/faults)
test-faults-alone: venv programs
	@env -u KUBECONFIG $(PYTEST) -m "gate and alone" $(call in,tests/faults)
test-soak: venv programs
	@env -u KUBECONFIG $(PYTEST) "tests/faults/test_cases.py::test_case[soak/long]" $(ARGS)
coverage: venv ## Measure the branches that the unit and integration tests execute, and check the thresholds.
	@for suite in unit integration integration-nightly; do \
	  COVERAGE_FILE="$$PWD/build/tests/coverage.$$suite" $(MAKE) "test-$$suite" ARGS="--cov --cov-report="; done
	@$(VENV_TOOLS) project branches

bench: venv ## Measure the performance on separate control planes; `make generate` writes its tables (10 minutes).
	@$(ALL_TOOLS) bench $(ARGS)
