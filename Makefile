# kernelab on a fresh machine: needs make and Python 3.11 or newer with venv, nothing else.
#   make table      the results/table.csv of config.yaml        make help      every target
PYTHON ?= python3
VENV   ?= .venv
# base, gpu-cuda12 or gpu-cuda13; auto takes what the NVIDIA driver supports, base where there is none.
LOCK   ?= auto
# Passed on: make table ARGS="--config device=emulated"   make test ARGS="-k plan"
ARGS   ?=
JOBS   ?= auto

IN_VENV = $(VENV)/bin/python
SOURCES = workflow tests envs kernels benchmarks
SNAKE   = Snakefile workflow

# Only what the locks name may be imported.
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help table test lint format docs doctor venv venv-dev venv-search venv-slurm lock clean python

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1: /p' $(firstword $(MAKEFILE_LIST))

table: venv ## set up, then build, check, time and compare everything in config.yaml: results/table.csv
	@$(IN_VENV) -m snakemake results/table.csv $(ARGS)

test: venv-dev ## set up, then run the tests (GPU tests are skipped where there is no GPU)
	@$(IN_VENV) -m pytest -n $(JOBS) $(ARGS)

lint: venv-dev ## snakemake --lint, snakefmt, ruff and mypy
	@status=0; for check in "snakemake --lint" "snakefmt --check $(SNAKE)" "ruff check --output-format=concise $(SOURCES)" \
	  "ruff format --check --output-format=concise $(SOURCES)" mypy; do echo "$$check"; $(IN_VENV) -m $$check || status=1; done; exit $$status

format: venv-dev ## rewrite the sources as lint wants them
	$(IN_VENV) -m snakefmt $(SNAKE)
	$(IN_VENV) -m ruff check --fix $(SOURCES)
	$(IN_VENV) -m ruff format $(SOURCES)

docs: python ## build the documentation as a site, in results/site
	@$(PYTHON) envs/install.py --venv $(VENV) --lock $(LOCK) --add docs
	@NO_MKDOCS_2_WARNING=1 $(IN_VENV) -m mkdocs build --quiet && echo "results/site/index.html"

doctor: venv ## what this machine can do, and the fix for what it cannot
	@$(IN_VENV) -m kernelab doctor

venv: python ## the environment alone, in .venv
	@$(PYTHON) envs/install.py --venv $(VENV) --lock $(LOCK)

venv-dev: python ## the environment with the test tools
	@$(PYTHON) envs/install.py --venv $(VENV) --lock $(LOCK) --add dev

venv-search: python ## the environment with Optuna, for searches with the sampler tpe
	@$(PYTHON) envs/install.py --venv $(VENV) --lock $(LOCK) --add search

venv-slurm: python ## the environment with the Slurm plugin, for profiles/slurm
	@$(PYTHON) envs/install.py --venv $(VENV) --lock $(LOCK) --add slurm

lock: venv-dev ## resolve pyproject.toml into envs/*.lock again (UPGRADE=--upgrade takes newer versions)
	@envs/lock.sh $(IN_VENV) $(UPGRADE)

clean: ## delete the environment and the results (snapshots stay)
	rm -rf $(VENV) .snakemake .pytest_cache .mypy_cache .ruff_cache
	find results -mindepth 1 -maxdepth 1 ! -name snapshots -exec rm -rf {} + 2>/dev/null || true

python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "kernelab: $(PYTHON) not found; install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "kernelab: $(PYTHON) is older than Python 3.11; name a newer one: make PYTHON=python3.12" >&2; exit 1; }
