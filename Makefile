# Everything runs in a virtual environment of its own; `make help` lists what there is.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin

# Tests run in two processes, each with a thread to itself (tests/conftest.py); `make test SIDE=` runs
# them one by one. The tests of a file stay together, for they share what was fitted once; files run in
# the order of tests/conftest.py, the longest first.
SIDE   ?= -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help install demo test fast test-all lint format docs notebooks browser benchmarks clean

help:            ## List the targets.
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: [^#]*##/\t/' | expand -t 18

install: $(VENV)/.installed   ## Set up the virtual environment.

# pip installs dependency groups from version 25.1 on. It compiles nothing: most modules that come along
# are never imported, and the others are compiled when they are.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable . --group dev
	touch $@

demo: install    ## Find the topics of the bundled corpus.
	$(BIN)/embedtopics demo

test: install    ## Check style and types beside the fast tests and a slice of the slow.
	$(MAKE) --no-print-directory -j2 lint fast

fast: install
	$(BIN)/python -m pytest -q $(SIDE) -m "(not slow or smoke) and not benchmark_data and not network"

test-all: install lint   ## Run every test; those that need data sets skip where these are absent.
	$(BIN)/python -m pytest -q $(SIDE) --hypothesis-profile=thorough -m "not network"

lint: install    ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/words.py
	$(BIN)/python docs/make.py --check

format: install  ## Put the code in the agreed form.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install    ## Build the site of the documentation into docs/_site.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	$(BIN)/python docs/make.py
	$(BIN)/sphinx-build -q -W --keep-going -c docs . docs/_site
	@echo "open docs/_site/index.html"

notebooks: install   ## Run the notebooks, and store them with what they answered.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	$(BIN)/python docs/notebooks.py

browser: install     ## Look at the pages in a browser, where there is one.
	$(BIN)/python -m pytest -q $(SIDE) -m "browser" tests/report tests/plots tests/annotation

benchmarks: install  ## Measure; see benchmarks/README.md for what it needs.
	$(BIN)/python benchmarks/run.py

clean:           ## Remove the environment and what tools left behind.
	rm -rf $(VENV) build dist docs/_site docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
