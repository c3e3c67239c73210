# Everything a user types. 'make' alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
LOCKS := $(addprefix envs/,requirements.lock torch.lock torch-cpu.lock faiss-cpu.lock faiss-gpu.lock)
# The GPU builds of torch and faiss where an NVIDIA driver answers, the CPU builds elsewhere. 'make BUILD=gpu' overrides.
BUILD ?= $(shell nvidia-smi -L >/dev/null 2>&1 && echo gpu || echo cpu)
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(PY) -m pip install -qq --no-input --no-deps
HASHED := $(PIP) --require-hashes
STUDY ?= embedded
RESULTS ?= results
PORT ?= 5000
STORE = sqlite:///$(abspath $(RESULTS))/mlflow.db
# Two test processes fit the smallest supported machine; 'make test TEST_WORKERS=0' runs in one.
TEST_WORKERS ?= 2
TESTS ?= tests
PYTEST_ARGS ?=
BENCH_ARGS ?=
EVIDENCE_ARGS ?=
# A fresh clone dates every file anew: what is installed already counts by its content.
DIGEST := $(shell cat $(LOCKS) pyproject.toml envs/python.sh | sha256sum | cut -c -64)
$(shell [ "$$(cat $(STAMP) 2>/dev/null)" = $(DIGEST) ] && touch $(STAMP))

# Rules of the workflow call 'python' and 'snakemake': they must be the ones of the environment.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PYTHONNOUSERSITE := 1
export MLFLOW_DISABLE_TELEMETRY := true

.PHONY: help benchmark smoke test error-rates evidence evidence-trained filled names test-browser test-cluster test-long test-outage test-portable test-rates test-scale test-stress lint types format ui bench venv lock clean-venv

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

benchmark: $(STAMP) ## train and judge the study (STUDY=embedded), print verdicts and where the report lies
	$(PY) -m benchmark run $(STUDY)

smoke: $(STAMP) ## the whole workflow in miniature: every loss, tiny data, up to the report
	$(PY) -m snakemake --profile workflow/profiles/local --configfile .test/config.yaml

test: $(STAMP) ## the tests that need nothing but this machine (TESTS=path, PYTEST_ARGS='-k name' to choose)
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --ignore=tests/browser $(PYTEST_ARGS) $(TESTS)

test-browser: $(STAMP) ## the report and the MLflow page in headless Chromium; skipped, with a reason, where it is missing
	OMP_NUM_THREADS=1 $(PY) -m pytest -rs $(PYTEST_ARGS) tests/browser

test-cluster: $(STAMP) ## tests on a real Slurm of one node, which they start and stop; says so where Slurm is missing
	@if reason=$$(tests/cluster/one_node.sh check); then \
		tests/cluster/one_node.sh with $(PY) -m pytest -rs $(PYTEST_ARGS) tests/cluster; \
	else \
		echo "skipped: $$reason"; \
	fi

test-long: $(STAMP) ## whole studies up to the report, signals and replays: the full lists of which 'make test' has one each
	OMP_NUM_THREADS=1 $(PY) -m pytest -m long -n $(TEST_WORKERS) --dist loadfile $(PYTEST_ARGS) $(TESTS)

test-outage: $(STAMP) ## real trainings and imports beside MLflow servers that fail (about 5 minutes)
	OMP_NUM_THREADS=1 $(PY) -m pytest -m stress $(PYTEST_ARGS) tests/outage

test-portable: $(STAMP) ## the bits on record on emulated processors of two makers; needs qemu-user
	OMP_NUM_THREADS=1 $(PY) -m pytest -rs -m portable $(PYTEST_ARGS) tests/reference

test-rates: $(STAMP) ## the goals of the verdict rule and of challenges on a smaller simulation than 'make error-rates'
	OMP_NUM_THREADS=1 $(PY) -m pytest -m rates $(PYTEST_ARGS) tests/unit/stats

test-scale: $(STAMP) ## 500 runs through the workflow, then planning and reporting 1,000 and 10,000, and scheduling 4,000 (about 30 minutes)
	$(PY) tests/scale/scale.py
	$(PY) tests/scale/scale.py --planned
	$(PY) tests/scale/scale.py --ready

test-stress: $(STAMP) ## the tutorial word for word, runs killed anywhere, Ctrl-C at any moment, full disks, failing runs, runs side by side (STRESS_KILLS=20 for more kills)
	OMP_NUM_THREADS=1 $(PY) -m pytest -m stress $(PYTEST_ARGS) tests/stress tests/scale tests/docs

error-rates: $(STAMP) ## simulate how often verdicts are wrong: docs/background/error_rates.md (about six minutes on two cores)
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -m stress tests/unit/stats/test_simulated_worlds.py
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(PY) tests/error_rates/page.py

evidence: $(STAMP) ## whether every study filled with made-up runs still gives the same files (EVIDENCE_ARGS=--update writes digests anew)
	$(PY) tests/evidence/evidence.py $(EVIDENCE_ARGS)

evidence-trained: $(STAMP) ## train smoke and embedded anew and compare with the results of before (BEFORE=folder; about 15 minutes)
	@test -d "$(BEFORE)" || { echo "give the results of before: make evidence-trained BEFORE=folder"; exit 1; }
	results=$$(mktemp -d) && $(PY) -m benchmark run smoke --results $$results && \
		$(PY) -m benchmark run embedded --results $$results && \
		$(PY) tests/evidence/evidence.py --trained "$(BEFORE)" $$results && rm -r $$results

names: $(STAMP) ## write the lists of tables, figures and of what timm and pytorch-metric-learning have anew
	$(PY) tests/helpers/installed_names.py

filled: $(STAMP) ## the page of a study on made-up runs near the printed numbers (STUDY=roadmap): results/filled/STUDY
	$(PY) tests/evidence/filled.py $(STUDY) $(RESULTS)/filled/$(STUDY)

lint: $(STAMP) types ## ruff, snakefmt, mypy and Snakemake's own lints: rules and formatting
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/snakefmt --check Snakefile workflow
	$(PY) -m snakemake --lint

types: $(STAMP) ## mypy: the types of the package
	$(VENV)/bin/mypy

format: $(STAMP) ## let ruff and snakefmt rewrite the sources
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/snakefmt Snakefile workflow

ui: $(STAMP) ## the MLflow UI on the results, on this machine only (PORT=5000)
	@test -f $(RESULTS)/mlflow.db || { echo "no $(RESULTS)/mlflow.db: run a study, or 'python -m benchmark track import STUDY'"; exit 1; }
	@echo "MLflow is at http://127.0.0.1:$(PORT); Ctrl-C ends it"
	@MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(PY) -m mlflow server --host 127.0.0.1 --port $(PORT) --workers 1 \
		--backend-store-uri $(STORE) --registry-store-uri $(STORE) --artifacts-destination $(abspath $(RESULTS))/mlartifacts \
		--uvicorn-opts "--log-level error" 2> >(grep --line-buffered 'Errno\|Error \|Exception' >&2)

bench: $(STAMP) ## time and memory beside the alternatives: results/bench/bench.md (BENCH_ARGS=--quick: three minutes)
	PYTHONPATH=tests $(PY) -m perf.bench $(BENCH_ARGS)

venv: $(STAMP) ## set up .venv only

lock: $(STAMP) ## write envs/*.lock from what .venv holds, with the hashes of the package index
	$(PY) envs/lock.py envs

clean-venv: ## remove .venv
	rm -rf $(VENV)

# Installed again when the lock or the project's metadata change, and when the environment is broken
# (moved, or its Python is gone): a stamp inside the environment dies with it.
$(STAMP): $(LOCKS) pyproject.toml envs/python.sh
	@if ! $(PY) -m pip --version >/dev/null 2>&1; then \
		python=$$(bash envs/python.sh) && \
		echo "setting up $(VENV) with $$python: about two minutes and 2 GB" && \
		"$$python" -m venv --clear $(VENV); \
	fi
	@echo "changed since the last installation, if there was one: $?"
	@echo "installing the packages of envs/*.lock, the $(BUILD) builds of torch and faiss, and checking their hashes"
	@$(HASHED) -r envs/requirements.lock -r envs/faiss-$(BUILD).lock
	@if [ $(BUILD) != cpu ] || ! $(HASHED) -r envs/torch-cpu.lock 2>/dev/null; then \
		echo "installing torch as the Python package index has it, on Linux with CUDA (see envs/README.md)" && \
		$(HASHED) -r envs/torch.lock; \
	fi
	@$(PIP) --no-build-isolation -e .
	@$(PY) -m pip check
	@echo $(DIGEST) > $@
