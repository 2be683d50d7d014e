# make demo   set up, score the sample conversations, write demo/report.html
# make test   set up, lint, run every test
# make bench DATA=folder   every metric on the default judged and adversarial sets, and on the human
#                          dialogues of corpora/; fills docs/results.md, docs/results.html and
#                          docs/ranking.svg. METRICS=density,cosine leaves out what takes hours
PYTHON ?= python3
METRICS ?= all
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date

.PHONY: demo test lint bench bench-engines clean

demo: $(STAMP)
	$(BIN)/causerie models pull
	$(BIN)/causerie score examples/conversations.jsonl --speaker system \
	  --metrics density,cosine,relevance,perplexity,bertscore,embedding,bleu,rouge,overlap,length \
	  --percentiles --out demo/scores.csv --report demo/report.html
	@echo "open demo/report.html in a browser"

test: $(STAMP) lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	@test -n "$(DATA)" || { echo "name the folder with the judged sets: make bench DATA=folder"; exit 2; }
	$(BIN)/causerie bench run --sets default --metrics $(METRICS) --data "$(DATA)" --out bench-results
	$(BIN)/causerie bench probe --metrics $(METRICS) --data "$(DATA)" --out bench-results
	$(BIN)/causerie bench rank --data "$(DATA)/corpora/dailydialog.test.jsonl.gz" --out bench-results
	$(BIN)/causerie bench reproduce density --metrics $(METRICS) --data "$(DATA)" --out bench-results/density.md
	{ cat bench-results/results.md; echo; cat bench-results/probe.md; echo; \
	  cat bench-results/ranking.md; echo; cat bench-results/density.md; } > docs/results.md
	cp bench-results/results.html bench-results/ranking.svg docs

bench-engines: $(STAMP)
	$(BIN)/python benchmarks/likelihood.py
	$(BIN)/python benchmarks/encoder.py

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo build dist
