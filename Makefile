# Every target sets up .venv first; that takes no time when it is up to date.
.DEFAULT_GOAL := help
.PHONY: help setup demo test leaks quick lint format bench schemas lock
PYTHON := .venv/bin/python
export TF_CPP_MIN_LOG_LEVEL ?= 3

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make or update .venv from the lock of this machine's TFX line
	@requirements/setup.sh

demo: setup ## the main job: digits from raw records to a blessed int8 model that a simulated device runs
	@.venv/bin/tfx-edge demo

# Reordered, the files of one long test each would come last, and one process wait for the other.
test: lint ## lint and all tests
	@tests/browser.sh
	.venv/bin/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

leaks: setup ## each executor 20 times in one process: its memory stays flat (`make test` has the quick ones of them)
	.venv/bin/pytest tests/components/test_leaks.py -m "slow or not slow" -rP

quick: lint ## lint and the unit tests of what changed since main
	$(PYTHON) tests/changed.py

lint: setup ## ruff, layers, types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports
	@mkdir -p .mypy_path && ln -sfn .. .mypy_path/tfx_edge
	.venv/bin/mypy

format: setup ## let ruff rewrite the code
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: setup ## all benchmarks, or NAME=...; results in benchmarks/results.json
	$(PYTHON) -m benchmarks $(NAME)

schemas: setup ## publish the JSON Schemas of schemas/ in schemas/json/
	$(PYTHON) -m tfx_edge.schemas.publish

LOCK := .venv/bin/uv pip compile --quiet --upgrade --generate-hashes --custom-compile-command 'make lock'
lock: setup ## resolve the lock files anew
	$(LOCK) --python-version 3.10 --python-platform x86_64-manylinux_2_31 -o requirements/tfx-1.16.txt requirements/tfx-1.16.in
	$(LOCK) --python-version 3.11 --universal -o requirements/tfx-1.21.txt requirements/tfx-1.21.in
	$(LOCK) --python-version 3.10 --universal -o requirements/targets.txt requirements/targets.in
	$(LOCK) --python-version 3.10 --universal -o requirements/device.txt requirements/device.in
