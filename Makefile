# On a fresh machine `make demo` and `make test` do everything, set-up included.
PYTHON ?= python3
BIN := .venv/bin

# One test process a core, each with one thread: two that share a core by turns would both be late.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

.PHONY: demo test test-slow test-journeys fuzz check notebooks docs docs-links wheel wiki-en format clean

demo: .venv/installed
	$(BIN)/ssdvae demo demo

test: .venv/installed-dev
	$(PYTEST) -m 'not slow and not journey'

# What `make test` leaves out, and .ci/run does not.
test-slow: .venv/installed-dev
	$(PYTEST) -m slow

# Whole journeys at full size, notebooks among them: before a release, on a machine with nothing else to do.
test-journeys: .venv/installed-dev
	$(BIN)/pytest -m journey

# As long as one likes: make fuzz SECONDS=3600 SEED=7. 20 seconds of it are in `make test`, a minute in `make test-slow`.
SECONDS ?= 600
SEED ?= $(shell date +%s)
fuzz: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.fuzz --seconds $(SECONDS) --seed $(SEED)

# What a commit must pass.
check: .venv/installed-dev
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(PYTEST) -m 'not slow and not journey'

# Run the notebooks, and keep what they show.
notebooks: .venv/installed-dev
	PYTHONWARNINGS='ignore:IProgress not found' $(BIN)/jupyter execute --inplace --NotebookClient.record_timing=False notebooks/*.ipynb

# The documentation site, in docs/_build/html; a warning is an error.
SPHINX = $(BIN)/python -m sphinx -q -W --keep-going
docs: .venv/installed-docs
	$(SPHINX) -b html docs docs/_build/html

# Whether links out into the world lead somewhere; it asks the network. Those inside are checked by `make docs` and `make test`.
docs-links: .venv/installed-docs
	$(SPHINX) -b linkcheck docs docs/_build/links

# The model that comes with the package, from articles or their events to a packed folder:
# make wiki-en DATA=data FRAMES=fndata-1.7 (pretrained/wiki-en/make.sh says what both are). It takes some hours.
wiki-en: .venv/installed
	SSDVAE=$(BIN)/ssdvae DATA=$(DATA) FRAMES=$(FRAMES) WORK=$(or $(WORK),work) sh pretrained/wiki-en/make.sh

# The wheel and the source archive, and the quick tests of both in new environments without the clone.
wheel: .venv/installed-dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python tests/try_archives.py dist

format: .venv/installed-dev
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv

# torch comes first and by its exact version, so that what depends on it finds it there.
.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch==$$(sed -n 's/^torch==//p' constraints.txt)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[conllu]'
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

.venv/installed-docs: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf .venv demo dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
