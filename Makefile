# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# Two processes, each with one thread: the suite is many small problems.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: help venv demo test test-slow lint format bench-sort bench-training bench-seeds bench-inference bench-rows bench-stream bench-onnx bench-reasons bench-pages bench-estimators prove prove-bits prove-verilog prove-kills prove-decisions prove-verifier fuzz sanitize figures trigger report-picture wheel docs clean mutate mutate-header coverage

help:
	@echo "make venv            build .venv with everything that development needs"
	@echo "make demo            a trigger: train, certify, threshold by rate, C++ and ONNX, figures; about a minute"
	@echo "make test            lint, type check and test"
	@echo "make test-slow       tests that take long: kills, sanitizers, studies, tutorials, pages used by mouse and keys"
	@echo "make format          sort imports and lay out the code"
	@echo "make bench-sort      GroupSort against torch.sort, forward and backward"
	@echo "make bench-training  the fused trainer against plain torch loops"
	@echo "make bench-seeds     a thousand seeds of the paper's network, trained at once"
	@echo "make bench-inference the engine against ONNX Runtime, torch, trees and the core's limit"
	@echo "make bench-rows      100 million rows of a Parquet file through isotone score"
	@echo "make bench-stream    training on 20 million rows of Parquet files against rows in memory"
	@echo "make bench-onnx      ONNX graphs: comparators against TopK, ordered sums"
	@echo "make bench-reasons   rows explained per second, exactly and sampled, against shap"
	@echo "make bench-pages     frames per second of reports while a slider is dragged; needs Chromium"
	@echo "make bench-estimators  default estimators against boosters, on small and whole tables (TABLES=DIR for more)"
	@echo "make prove           the proof that computed scores are monotone, checked by Coq; needs coq and Flocq"
	@echo "make prove-bits      a billion comparisons of computed scores; four minutes"
	@echo "make prove-decisions a million decisions of the evaluators of LHCb's trigger"
	@echo "make prove-verifier  both certifiers on 10,000 models and as many changed files (PAGE=1: that of the playground); needs Node"
	@echo "make prove-verilog   a million rows through simulated Verilog, and its area by yosys"
	@echo "make fuzz            the runtime and all that reads model files, on inputs that coverage chooses, and tables; needs Clang"
	@echo "make sanitize        the extension under the sanitizers of GCC: memory, undefined behavior, races of threads"
	@echo "make prove-kills     isotone train, sweep, score, export and report, killed 20 times each, end with the same result"
	@echo "make mutate          changes of the code that decides a certificate, each noticed by a test; SHARE=0.1: a tenth of them"
	@echo "make mutate-header   changes of the C++ header, each noticed by a program of the tests; SHARE=0.01: a hundredth of them"
	@echo "make coverage        branches of src and of the shipped C++ header that tests take; QUICK=1: of a few packages alone"
	@echo "make figures         all studies: figures and numbers in results/, tables in docs/; QUICK=1: a try"
	@echo "make trigger         the trigger study: sample, training, figures; QUICK=1: from the small sample"
	@echo "make report-picture  the picture of the demo's report in docs/figures; needs Chromium"
	@echo "make wheel           wheel, source archive and bill of materials in dist/, tried in an empty environment"
	@echo "make docs            the documentation as HTML in build/docs; warnings are errors"
	@echo "make clean           remove what make made"

venv: .venv/installed

.venv/installed: pyproject.toml constraints.txt cpp/CMakeLists.txt $(wildcard cpp/*/*)
	@command -v c++ >/dev/null || { echo "isotone has a compiled part: install a C++17 compiler (Debian: apt-get install g++ python3-dev)"; exit 1; }
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isotone needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another with make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt scikit-build-core nanobind cmake ninja setuptools wheel
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	touch $@

demo: venv
	$(BIN)/python -m demo

test: lint
	$(PYTEST) -m "not slow"

test-slow: venv
	$(PYTEST) -m slow

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-sort: venv
	$(BIN)/python -m bench.training.group_sort

bench-training: venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-deps monotonicnetworks==1.5.1
	$(BIN)/python -m bench.training.stacks
	$(BIN)/python -m bench.training.knots

bench-seeds: venv
	$(BIN)/python -m bench.training.thousand_seeds

bench-rows: venv
	$(BIN)/python -m bench.inference.many_rows

bench-stream: venv
	$(BIN)/python -m bench.training.stream

bench-inference: venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]' --no-build-isolation
	$(BIN)/python -m bench.inference.engine
	$(BIN)/python -m bench.inference.last_bit
	$(BIN)/python -m bench.inference.growth
	$(BIN)/python -m bench.inference.scaling
	$(BIN)/python -m bench.inference.integers

bench-onnx: venv
	$(BIN)/python -m bench.inference.onnx_sort

bench-reasons: venv
	-$(BIN)/python -m pip install -q --disable-pip-version-check --only-binary :all: --no-deps --upgrade --target build/shap shap slicer cloudpickle tqdm numba llvmlite
	PYTHONPATH=build/shap OMP_NUM_THREADS=1 $(BIN)/python -m bench.inference.reasons

bench-pages: venv
	$(BIN)/python -m bench.pages.frames

bench-estimators: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.estimators.small_tables $(if $(TABLES),--tables $(TABLES))
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.estimators.whole_tables

wheel: venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[release]'
	$(BIN)/python release/wheel.py --twice
prove:
	@$(MAKE) -s -C proofs

prove-bits: venv
	$(BIN)/python -m bench.proofs.last_bit

prove-verilog: venv
	$(BIN)/python -m bench.proofs.flips
	$(BIN)/python -m bench.proofs.verilog

prove-kills: venv
	$(BIN)/python -m bench.proofs.kills

prove-decisions: venv
	$(BIN)/python -m bench.proofs.decisions

prove-verifier: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.proofs.verifier $(if $(PAGE),--page) $(if $(MODELS),--models $(MODELS))

fuzz: venv
	$(BIN)/python -m pip install -q --disable-pip-version-check --only-binary :all: --no-deps --upgrade --target build/atheris atheris==3.0.0
	$(BIN)/python -m bench.fuzz.runtime $(if $(RUNS),--runs $(RUNS))
	PYTHONPATH=build/atheris OMP_NUM_THREADS=1 $(BIN)/python -m bench.fuzz.model_files $(if $(RUNS),--runs $(RUNS))
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.fuzz.tables $(if $(RUNS),--runs $(RUNS))

sanitize: venv
	$(BIN)/python -m bench.fuzz.extension --sanitizer address $(if $(RUNS),--runs $(RUNS))
	$(BIN)/python -m bench.fuzz.extension --sanitizer thread $(if $(RUNS),--runs $(RUNS))

mutate: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.mutation.campaign $(if $(SHARE),--share $(SHARE))

mutate-header: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.mutation.header $(if $(SHARE),--share $(SHARE))

coverage: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.coverage $(if $(QUICK),--quick)

figures: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m studies $(if $(QUICK),--quick)

# Two processes make the sample, and an interrupted one goes on where it stopped.
TRIGGER := results/trigger
trigger: venv
ifdef QUICK
	OMP_NUM_THREADS=1 $(BIN)/python -m studies.trigger --quick --out $(TRIGGER)/quick
else
	OMP_NUM_THREADS=1 $(BIN)/python -m studies.trigger.simulation.sample --size full --out $(TRIGGER)/sample
	OMP_NUM_THREADS=1 $(BIN)/python -m studies.trigger --sample $(TRIGGER)/sample --out $(TRIGGER) --threads 2
	$(BIN)/python -m studies.trigger.pages $(TRIGGER)
endif

report-picture: venv
	$(BIN)/python -m demo.picture

docs: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m demo.gallery
	$(BIN)/python -m sphinx -W --keep-going -n -q docs build/docs
	@echo "build/docs/index.html"

clean:
	rm -rf .venv build results .hypothesis .mypy_cache .pytest_cache .ruff_cache
