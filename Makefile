# The verbs of Pumice. Each sets up what it needs: a virtual environment with locked versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp-dev
RUNTIME := $(VENV)/.stamp-runtime

# Tests start many processes; without compiled files each of them compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test full plain faults check docs e2e churn bench fuzz properties mutants release

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the virtual environment

demo: $(RUNTIME) ## play a story on an embedded cluster and write a report
	$(BIN)/pumice demo --report build/demo.html

quick: $(STAMP) ## format, lint, types, golden cases, tests of the deciding core: about a minute on two cores
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 --short tests/scenarios/test_golden.py tests/unit/core tests/unit/framework

# With COVERAGE, as in CI, all tests run; what failed is tried once more, alone, and named if it
# passes then.
test: $(STAMP) ## run the tests, about five minutes on two cores; with COVERAGE=1 all, and count the lines they reach
ifdef COVERAGE
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m tools.retry -q -n 2 --ignore tests/performance
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/python -m tools.retry -q tests/performance  # these compare times: measuring lines would distort them
else
	@echo "about five minutes on two cores; slow tests and most draws are left out: make full runs all"
	$(BIN)/pytest -q -n 2 --short
endif

full: $(STAMP) ## run all tests, slow ones and every draw too: about eleven minutes on two cores
	$(BIN)/pytest -q -n 2

plain: $(STAMP) ## golden cases and properties of placing without the compiled kernel
	PUMICE_KERNEL=off $(BIN)/pytest -q -n 2 tests/scenarios/test_golden.py tests/properties/test_placing.py \
		tests/properties/test_turns.py tests/properties/test_gangs_with_terms.py tests/unit/framework

fuzz: $(STAMP) ## feed garbled input to every reader: SECONDS=60 SEED=0 TARGET=
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0) \
		$(addprefix --target ,$(TARGET))

# The tests of `make test` draw the same examples each time; these draw others, and tell their seed.
properties: $(STAMP) ## run property tests with fresh seeds: ROUNDS=10
	for round in $$(seq $(or $(ROUNDS),10)); do \
		$(BIN)/pytest -q -n 2 --hypothesis-profile fresh --hypothesis-seed \
			$$($(BIN)/python -c 'import secrets; print(secrets.randbits(31))') \
			tests/properties tests/hostile/test_objects.py || exit 1; \
	done

mutants: $(STAMP) ## change the code here and there and see whether tests notice: COUNT=40 SEED=0
	$(BIN)/python -m tools.mutants --count $(or $(COUNT),40) --seed $(or $(SEED),0)

# What failed is tried once more, alone, and named if it passes then.
e2e: $(STAMP) ## run the tests on a real control plane, built on the first run; with OPERATORS=1 those of other projects too
	$(BIN)/python -m tests.e2e_kube.controlplane.build
	$(if $(OPERATORS),$(BIN)/python -m tests.e2e_kube.operators)
	$(BIN)/python -m tools.retry -q -p no:randomly tests/e2e_kube

SEEDS ?= 2000
FIRST ?= 0
faults: $(STAMP) ## run the live stack on SEEDS seeds of simulated faults
	$(BIN)/python -m tests.faults --first $(FIRST) --seeds $(SEEDS) --jobs 2
	$(BIN)/python -m tests.faults --takeovers --first $(FIRST) --seeds $(SEEDS) --jobs 2

MINUTES ?= 60
NODES ?= 5000
PODS ?= 20000
churn: $(STAMP) ## churn pods on a real control plane for MINUTES, with NODES and PODS
	$(BIN)/python -m tests.e2e_kube.controlplane.build
	$(BIN)/python -m bench.churn --minutes $(MINUTES) --nodes $(NODES) --pods $(PODS)

check: $(STAMP) docs ## format, lint, types, layers, import cycles, spelling, documentation site, known vulnerabilities
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.import_cycles
	$(BIN)/codespell
	$(BIN)/python -m tools.audit

release: $(STAMP) ## write wheels, source archive, chart, manifest, notes, bill of materials and checksums to dist/
	$(BIN)/python -m tools.release dist
	$(BIN)/python -m tools.audit

docs: $(STAMP) ## write the documentation as a site to build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(STAMP) ## measure speed
	$(BIN)/python -m bench.run
	$(BIN)/python -m bench.report

# pip checks every hash, then installs the project itself without asking for anything more.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(STAMP): $(RUNTIME) requirements/dev.txt
	@echo "installing tests and linters (requirements/dev.txt)"
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

$(RUNTIME): requirements/runtime.txt requirements/build.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pumice needs Python 3.11 or newer; try make PYTHON=python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing what Pumice needs (requirements/runtime.txt and build.txt)"
	@$(INSTALL) --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	@echo "installing Pumice from this folder"
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@
