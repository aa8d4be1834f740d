# `make demo` and `make test` need nothing but Python 3.10+ and make: they create .venv and install into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: help demo test test-all coverage lint format bench paper faults fuzz docs release-check clean
help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "evenscore needs Python 3.10 or newer; name one with 'make PYTHON=python3.11 ...'" >&2; exit 2; }
	@echo "creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# Installing takes a minute or more. On a terminal pip shows what it fetches; a log gets our line and what goes wrong.
pip_install = quiet=; [ -t 1 ] || quiet=-q; $(BIN)/python -m pip install --disable-pip-version-check $$quiet

# One stamp per set of extras: `make demo` installs what `pip install evenscore` does, and neither extras nor linters.
$(VENV)/.installed: $(VENV)/.python pyproject.toml
	@echo "installing evenscore and what it needs into $(VENV) (a minute or two)"
	@$(pip_install) -e .
	@touch $@

# Of the extras, most modules are never imported; Python compiles those that are, which takes half a minute less.
$(VENV)/.installed-%: $(VENV)/.python pyproject.toml
	@echo "installing evenscore with the extras $(subst +, and ,$*) into $(VENV) (a minute or two)"
	@$(pip_install) --no-compile -e ".[$(subst +,$(comma),$*)]"
	@touch $@
comma := ,

demo: $(VENV)/.installed ## set up and run the main job on data that ships with the project
	@echo "comparing all norms on real and on simulated scores (less than a minute)"
	$(BIN)/evenscore demo

# Bytecode is kept even where the environment says otherwise: without it each worker compiles every test each time.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(CURDIR)/$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

TEST_EXTRAS ?= all+test
LINT_EXTRAS ?= all+lint

test: $(VENV)/.installed-$(TEST_EXTRAS) ## set up and run the tests
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.installed-all+test ## the slow ones, too (a browser, killed workers), and more examples
	EVENSCORE_EXAMPLES=50 $(PYTEST)

coverage: $(VENV)/.installed-all+test ## the same, and which lines they reach
	$(BIN)/python -m pytest -q -n $(WORKERS) --cov --cov-report=term

lint: $(VENV)/.installed-$(LINT_EXTRAS) ## style, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-all+lint ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-all+bench ## every performance claim, as a ratio to a named baseline
	$(BIN)/python benchmarks/run.py

paper: $(VENV)/.installed-all ## the paper's experiment from speech; AUDIOMNIST is the directory of the corpus
	@test -n "$(AUDIOMNIST)" || { echo "say where the corpus is: make paper AUDIOMNIST=DIRECTORY" >&2; exit 2; }
	$(BIN)/python -m recipes.paper --corpus audiomnist --root "$(AUDIOMNIST)" -o paper-out

fuzz: $(VENV)/.installed-all+test ## try everything that takes input with spoilt input, for five minutes
	$(BIN)/python tests/solid/fuzz.py --seconds 300

faults: $(VENV)/.installed-all+test ## stop commands at every system call that changes files (needs gcc; takes long)
	$(BIN)/python tests/solid/faults.py

docs: $(VENV)/.installed-all+docs ## build the site into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release-check: $(VENV)/.python ## build what would be released, and try it in clean environments (a quarter of an hour)
	$(BIN)/python .ci/release_check.py

clean: ## remove everything that make created
	rm -rf $(VENV) site .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src recipes tests docs benchmarks -name __pycache__ -prune -exec rm -rf {} +
