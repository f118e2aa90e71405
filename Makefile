# Two commands do everything on a machine with Python >= 3.11 and venv:
#   make demo    sets up, simulates a HAMR trot, a gecko's course, a skinned leg; pages, results, plots
#   make test    sets up and runs the tests that take seconds; make test-all runs the others too
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out
READY := $(VENV)/.ready

.PHONY: demo docs types test test-all test-slow lint format check bench bench-quick fuzz models clean

demo: $(READY)
	mkdir -p $(OUT)
	$(BIN)/drakebots simulate hamr --gait trot --frequency 10 --surface card --cycles 15 \
	  -o $(OUT)/hamr_trot.nc --html $(OUT)/hamr_trot.html --plot $(OUT)/hamr_trot.png
	$(BIN)/drakebots simulate gecko --epsilon 10cm \
	  -o $(OUT)/gecko.nc --html $(OUT)/gecko.html --plot $(OUT)/gecko.png
	$(BIN)/drakebots simulate skinned-leg \
	  -o $(OUT)/skinned_leg.nc --html $(OUT)/skinned_leg.html --plot $(OUT)/skinned_leg.png

# Two workers on two cores: with threads of their own, BLAS in each waits for the other's
# (test-all takes 22:47 instead of 15:37 minutes).
test test-all bench-quick: export OMP_NUM_THREADS = 1

# Python keeps what it has compiled, whatever the shell says: the tests start it hundreds of
# times, and each start would compile the package and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

# File by file, so that what a file's tests share is made once.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not long and not slow"

test-all: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The faces, the two rooms at the top, and what a user writes.
types: $(READY)
	$(BIN)/mypy $$(ls drakebots/core/*.py drakebots/results/*.py \
	  $$(grep -rl "lazy_face(__name__)" drakebots --include=__init__.py) | sort -u) \
	  tests/house/typed_program.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint types test-all

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -c docs . $(OUT)/site

# Each to its end, whatever another one says; hours.
bench: $(READY)
	grep -l __main__ scripts/bench/*.py | xargs -t -n 1 $(BIN)/python

# Every script of scripts/bench, scripts/papers and scripts/evidence, two or three cases of each.
bench-quick: $(READY)
	$(BIN)/python -m pytest -n 2 --durations 0 tests/scripts/test_quick_forms.py::test_quick_form

# Damaged files, extreme numbers, wrong types, stops; what breaks is kept in out/fuzz.
MINUTES ?= 10
fuzz: $(READY)
	$(BIN)/python scripts/bench/hard.py --minutes $(MINUTES)

models: $(READY)
	$(BIN)/python scripts/make_hamr_model.py
	$(BIN)/python scripts/make_control_models.py
	$(BIN)/python scripts/make_gecko_model.py
	$(BIN)/python scripts/make_voxel_model.py
	$(BIN)/python scripts/make_skinned_leg.py
	$(BIN)/python scripts/make_quads.py

$(READY): pyproject.toml setup.py $(shell find drakebots -name "*.[ch]")
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "drakebots needs Python 3.11 or newer; set PYTHON=python3.12, say")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $(READY)

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) .venv-newest .venv-plain $(OUT) build *.egg-info
