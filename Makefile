# run, test, check and bench set up what they need by themselves: Python >= 3.11 and make are enough.
PYTHON ?= python3
PORT ?=
VENV := .venv
BIN := $(VENV)/bin
# Compiled once, also where the machine says not to: else each process of the suite compiles everything anew.
export PYTHONDONTWRITEBYTECODE :=
IMPURE := */upstream/*,*/runs/*,*/store/*,*/simulate/*,*/agent/*,*/server/*,*/cli/*,*/testing/*,*/client/*,*/streams.py

PAGE := src/headwater/server/page/index.html
WEB := $(shell find web/src -type f) web/index.html web/vite.config.ts web/tsconfig.json
# Tests of what runs as processes of their own, where no line is counted; and long ones (any input, any order, real SDKs), whose lines
# plainer ones reach, too. Without the tracer they take little more than half the time.
APART := $(wildcard tests/server tests/server_native tests/cli tests/page tests/test_serve.py \
  tests/workers tests/test_container.py tests/simulate/test_page.py tests/dialects/test_*_sdk.py tests/dialects/test_histories.py \
  tests/dialects/test_checkers.py tests/sessions/test_any_talk.py tests/config/test_any.py tests/config/test_lines.py \
  tests/agent/test_points.py tests/runs/test_kill.py tests/runs/test_machine.py tests/store/test_machine.py tests/upstream/test_many.py)
# Three on two cores: a good part of the time is waiting.
PYTEST := pytest -n 3 --dist worksteal

.PHONY: run page test check check-python check-page check-tests bench soak screenshots docs clean

run: $(VENV)/.run $(PAGE)
	@$(BIN)/headwater serve $(if $(PORT),--port $(PORT)) || [ $$? -eq 130 ]

# What is served at `/`, built into the package.
page: $(PAGE)

test: $(VENV)/.dev $(PAGE)
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m $(PYTEST) tests $(APART:%=--ignore=%)
	@$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=99
	@# All that is pure has no excuse.
	@$(BIN)/coverage report --fail-under=100 --omit='$(IMPURE)' > /dev/null || $(BIN)/coverage report --omit='$(IMPURE)' --fail-under=100
	$(BIN)/$(PYTEST) $(APART)

# Three parts, so that `make -j2 check` has both cores at work.
check: check-python check-page check-tests

check-python: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src tests bench docs examples

check-page: web/node_modules/.made
	.ci/npm run check

# All can be read; and are compiled then, so that not every process of `make test` has to.
check-tests: $(VENV)/.dev
	$(BIN)/pytest --collect-only -qq > $(VENV)/tests.txt || { cat $(VENV)/tests.txt; exit 1; }

bench: $(VENV)/.dev $(PAGE)
	$(BIN)/python -m bench

# The same kills and machines as in `make test`, ten times as many.
soak: $(VENV)/.dev
	HEADWATER_KILLS=200 $(BIN)/python -m pytest --hypothesis-profile=soak tests/runs/test_kill.py tests/runs/test_machine.py tests/store/test_machine.py

# The pictures in the README, from the page as it is now.
screenshots: $(VENV)/.dev $(PAGE)
	$(BIN)/python -m docs.screenshots

docs: $(VENV)/.dev
	$(BIN)/python -m docs.generate

clean:
	rm -rf $(VENV) web/node_modules src/headwater/server/page

# Touched only once there is a whole environment: one that was interrupted is made anew.
$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "make: there is no $(PYTHON); give another one: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is older than 3.11; give another one: make PYTHON=python3.12 …" >&2; exit 1; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "make: $(PYTHON) can't make a virtual environment; on Debian: apt install python3-venv" >&2; exit 1; }
	@# Older ones, as come with Python 3.11, take twice as long for what follows.
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt pip || true
	@touch $@

# Each stamp is an installation as pyproject.toml and constraints.txt want it; make repeats it when they change.
# Compiled when first imported: most of it never is.
$(VENV)/.run: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing Headwater into $(VENV) (once)…"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt | $(VENV)/.node
	@echo "Installing Headwater and its development tools into $(VENV) (once)…"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@ $(VENV)/.run

# Before all else that pip installs: two of them at once would see each other's halves.
$(VENV)/.node: $(VENV)/.made
	@.ci/npm --version > /dev/null
	@touch $@

web/node_modules/.made: $(VENV)/.node web/package.json
	@echo "Installing what the page is built with into web/node_modules (once)…"
	@.ci/npm install --loglevel error --no-progress
	@touch $@

$(PAGE): web/node_modules/.made $(WEB)
	@echo "Building the page…"
	@.ci/npm run --silent build -- --logLevel warn
	@touch $@
