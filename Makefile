# `make demo` and `make test` are all a newcomer needs: each does its own set-up.

PYTHON_BIN := .venv/bin/python
BENCH_SIZE ?= 640x360
# A worker a core; whole files stay together, so that what a file sets up is made once.
TEST_WORKERS ?= auto
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup setup-test demo test lint bench

help:
	@echo "make demo    the frame and its cost report, into out/demo/"
	@echo "make test    all tests"
	@echo "make lint    ruff (check and format) and mypy"
	@echo "make bench   Mrays/s of the traversal kernels on the embedded scene, into out/bench/"
	@echo "make setup   only the set-up that demo and test share"

setup:
	@bash .ci/setup

setup-test:
	@bash .ci/setup test

demo: setup
	@.venv/bin/treeline report --out out/demo

test: setup-test
	@$(PYTHON_BIN) -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

lint: setup-test
	@$(PYTHON_BIN) -m ruff check .
	@$(PYTHON_BIN) -m ruff format --check .
	@$(PYTHON_BIN) -m mypy

bench: setup
	@mkdir -p out/bench
	@for kind in primary mirror diffuse shadow; do \
	    .venv/bin/treeline rays --size $(BENCH_SIZE) --kind $$kind --out out/bench/$$kind.npz || exit; \
	done
	@.venv/bin/treeline bench trace --rays out/bench/primary.npz --rays out/bench/mirror.npz \
	    --rays out/bench/diffuse.npz --rays out/bench/shadow.npz
