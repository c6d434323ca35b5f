# The verbs of Pumice. Each sets up what it needs: a virtual environment with locked versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp-dev

.DEFAULT_GOAL := help
.PHONY: help setup demo test faults check e2e churn bench

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the virtual environment

demo: $(STAMP) ## play a story on an embedded cluster and write a report
	$(BIN)/pumice demo --report build/demo.html

test: $(STAMP) ## run all tests; with COVERAGE=1, hold the lines they reach to a threshold
ifdef COVERAGE
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m pytest -q -n 2 --ignore tests/performance
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/pytest -q tests/performance  # these compare times: measuring lines would distort them
else
	$(BIN)/pytest -q -n 2
endif

# A real API server on a shared machine may stall for seconds: what failed is tried once more, alone.
e2e: $(STAMP) ## run the tests on a real control plane, built on the first run
	$(BIN)/python -m tests.e2e_kube.controlplane.build
	$(BIN)/pytest -q -p no:randomly tests/e2e_kube || \
		$(BIN)/pytest -q -p no:randomly --last-failed --last-failed-no-failures none tests/e2e_kube

SEEDS ?= 2000
FIRST ?= 0
faults: $(STAMP) ## run the live stack on SEEDS seeds of simulated faults
	$(BIN)/python -m tests.faults --first $(FIRST) --seeds $(SEEDS) --jobs 2

MINUTES ?= 60
NODES ?= 5000
PODS ?= 20000
churn: $(STAMP) ## churn pods on a real control plane for MINUTES, with NODES and PODS
	$(BIN)/python -m tests.e2e_kube.controlplane.build
	$(BIN)/python -m bench.churn --minutes $(MINUTES) --nodes $(NODES) --pods $(PODS)

check: $(STAMP) ## format, lint, types, layers, import cycles, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.import_cycles
	$(BIN)/codespell

bench: $(STAMP) ## measure speed
	$(BIN)/python -m bench.run
	$(BIN)/python -m bench.report

# pip checks every hash, then installs the project itself without asking for anything more.
$(STAMP): requirements/dev.txt requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pumice needs Python 3.11 or newer; try make PYTHON=python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation -e .
	touch $@
