# Every target installs what it needs into .venv first and is quick the second time.
.DEFAULT_GOAL := help
.PHONY: help run demo check test ids fuzz simulate soak asan bench clean

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(PYTHON) tools/bootstrap.py
PYTEST := $(BIN)/python -m pytest
STAGES := $(BIN)/python -m tools.stages

help:  ## Say what each target does
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

run: python  ## Install and start a broker on localhost:9092, with its data under ./data
	@$(INSTALL) run
	@$(BIN)/moldau start

demo: python  ## Install, with Spark, and see a pipeline at work for a minute
	@$(INSTALL) demo
	@$(BIN)/moldau demo

check: python  ## Format, lint, types, layers, tidiness and unit tests
	@$(INSTALL) dev
	@$(STAGES) lint unit

test: ready check  ## All tests: check, oracles, other people's clients, a sample of every long proof
	@$(STAGES) peers spark alone

ids: python  ## Say which tests a revision has in test or soak that are in neither now: BASE=main
	@$(INSTALL) dev
	@$(BIN)/python -m tools.test_ids $(or $(BASE),HEAD)

fuzz: python  ## A million mutated frames and batches through the decoders
	@$(INSTALL) dev
	MOLDAU_EXPLORE=1 MOLDAU_FUZZ_FRAMES=1000000 $(PYTEST) -q tests/fuzz

simulate: python  ## Simulated nodes under faults until SECONDS of wall time: docs/simulator.md
	@$(INSTALL) dev
	$(BIN)/python -m tools.simulate $(or $(SECONDS),600)

soak: ready  ## The long proofs at full counts; results go to docs/proofs/
	$(BIN)/python -m tools.soak

asan: python  ## The kernels' tests and fuzzers under AddressSanitizer (docs/sanitizer.md)
	@$(INSTALL) dev
	tools/sanitize.sh

bench: ready  ## Measure against the peers; print ratios, store them in bench/results/
	$(BIN)/python -m bench

clean:  ## Remove everything that the other targets made
	rm -rf .venv .cache build dist *.egg-info src/*.egg-info .mypy_cache .pytest_cache .ruff_cache \
	  .hypothesis .import_linter_cache
	find src -name '*.so' -delete
	find src -name __pycache__ -prune -exec rm -r {} +
	rm -f src/moldau/_native/*.c

# What tests run beside ours: other people's clients, brokers and compilers.
.PHONY: ready
ready: python
	@$(INSTALL) test

.PHONY: python
python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "moldau: $(PYTHON) not found: install Python 3.11 or newer" \
	       "(Debian, Ubuntu: apt-get install python3 python3-dev python3-venv)" >&2; exit 1; }
