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
# The unit tests run beside the others, which mostly wait.
TEST_RUN = $(call beside,unit,integration smoke,5)

.PHONY: test test-all test-rest test-e2e test-kubectl test-mutants test-repeat test-olm-programs coverage bench
.PHONY: binaries programs built deployed
binaries:
	@$(CLUSTER_TOOL) bin >/dev/null
programs:
	@$(CLUSTER_TOOL) build
built: venv
	@$(if $(BUILT),,$(PROJECT) build $(IMAGE_OPTIONS) --for-pods)
deployed: built
	@$(PROJECT) push IMG "$(IMG)" --into-cluster --for-pods
	@$(PROJECT) push AGENT_IMG "$(AGENT_IMG)" --into-cluster --for-pods
	@$(PROJECT) deploy $(IMAGES) --overlay="$(OVERLAY)" --for-pods

test: venv ## Run the unit and integration tests and, with real pods, each promise of the README.
	@rm -rf build/tests; mkdir -p build/tests; $(TEST_RUN); $(call sum,$(TEST))

test-all: venv ## Run all tests but those that run nightly.
	@rm -rf build/tests; mkdir -p build/tests; $(TEST_RUN); $(MAKE) test-rest || code=$$?; exit $${code:-0}

# Suites that do not share the cluster run beside others, at a low priority. Some fault cases measure the time of a reply,
# so nothing runs beside those. OLM is compiled while the disruptive tests wait, and starts before the fault cases end.
test-rest: venv
	@mkdir -p build/tests; $(MAKE) built || code=$$?; export BUILT=yes; \
	$(call beside,simulation olm-programs,pods disruptive,10); $(call beside,olm,faults-gate,5); $(call run,faults-alone); \
	$(call sum,pods disruptive faults-gate faults-alone simulation olm)

# The suites, a row each: `test-NAME` runs a folder of tests/, or a file, with options of pytest, after what it needs.
# With `built` or `deployed`, it uses the cluster of KUBECONFIG, or the local one.
# $(call row,NAME,FOLDER,NEEDS,OPTIONS)
define suite
.PHONY: test-$(1)
test-$(1): venv $(3)
	@$(if $(filter built deployed,$(3)),,env -u KUBECONFIG) $(if $(filter olm,$(2)),$$(OLM_IMAGES)) $$(PYTEST) $(4) $$(call in,tests/$(2))
endef
row = $(eval $(call suite,$(1),$(2),$(3),$(4)))
$(call row,unit,unit,binaries,$$(PARALLEL) -q) ## Run the tests that need no cluster.
$(call row,simulation,simulation,,$$(BUSY) -q) ## Run each fault case against the controller, with an API server in memory and a virtual clock.
$(call row,integration,integration,programs,$$(PARALLEL) -m "not nightly") ## Run the tests that need an API server: of KUBE_VERSION, or of the cluster's version.
$(call row,smoke,e2e,deployed,$$(PARALLEL) -m smoke)
$(call row,pods,e2e,deployed,$$(PARALLEL) -m "not smoke and not disruptive and not nightly")
$(call row,disruptive,e2e,deployed,$$(ONCE_MORE) -m disruptive)
$(call row,olm,olm,built,$$(ONCE_MORE) -m "not modes") ## Run the tests with the real OLM and real pods, in a separate cluster that is removed afterwards.
$(call row,faults,faults,programs,$$(CASES)) ## Run the fault tests on a separate control plane: all, or ARGS="-k 'watch/ or drift/'".
$(call row,faults-gate,faults,programs,$$(CASES) -m "gate and not alone")
$(call row,faults-alone,faults,programs,-m "gate and alone")
# Nightly:
$(call row,walks,simulation/test_walks.py,,--numprocesses=$$(WORKERS))
$(call row,soak,faults/"test_cases.py::test_case[soak/long]",programs)
$(call row,clients,clients,deployed) ## Run client libraries of six languages against real pods; needs node, npm, javac and mvn.
$(call row,incidents,incidents,deployed,$$(ONCE_MORE))
$(call row,integration-nightly,integration,programs,$$(PARALLEL) -m nightly)
$(call row,e2e-nightly,e2e,deployed,$$(PARALLEL) -m nightly)
$(call row,servers,integration,programs,$$(PARALLEL) -m server)
# With KUBECTL_VERSION, one of `cluster.versions.SUPPORTED`.
$(call row,kubectl-messages,integration,programs,$$(PARALLEL) -m "kubectl and not nightly")
$(call row,kubectl-pages,e2e,deployed,$$(PARALLEL) -m kubectl)
$(call row,olm-modes,olm,built,$$(ONCE_MORE) -m modes)
$(call row,release,releases,,$$(ONCE_MORE))
$(call row,chart,chart,,$$(ONCE_MORE))
$(call row,certmanager,certmanager,,$$(ONCE_MORE))
$(call row,dashboards,grafana,,$$(ONCE_MORE))
$(call row,monitoring,monitoring,,$$(ONCE_MORE))
$(call row,corners,corners,,$$(ONCE_MORE))
test-walks: export WALKS_SEED ?= $(shell echo $$((RANDOM * RANDOM)))
test-walks: export WALKS_SECONDS := $(or $(WALKS_SECONDS),1800)

test-e2e: test-smoke test-pods test-disruptive ## Deploy the operator and run its tests with real pods.
test-kubectl: test-kubectl-messages test-kubectl-pages
test-olm-programs: venv
	-@$(if $(ARGS),,exec env $(TOOLS) olm programs --running >/dev/null)
# Before tests are removed (CONTRIBUTING.md).
test-mutants: venv
	@mkdir -p build; $(ALL_TOOLS) mutation --out=build/mutants.jsonl $(ARGS)
test-repeat: venv
	@for number in $$(seq $(or $(TIMES),20)); do [ $$SECONDS -lt $$((60 * $(or $(MINUTES),300))) ] || break; \
	  $(MAKE) --keep-going ROUND=-$$number $(addprefix test-,$(or $(NAMES),integration smoke pods)) || code=1; done; exit $${code:-0}
coverage: venv ## Measure the branches that the unit and integration tests execute, and check the thresholds.
	@for suite in unit integration integration-nightly; do \
	  COVERAGE_FILE="$$PWD/build/tests/coverage.$$suite" $(MAKE) "test-$$suite" ARGS="--cov --cov-report="; done
	@$(VENV_TOOLS) project branches

bench: venv ## Measure the performance on separate control planes; `make generate` writes its tables (10 minutes).
	@$(ALL_TOOLS) bench $(ARGS)
