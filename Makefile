# make demo   set up, score the sample conversations, write demo/report.html
# make test   set up, lint, run every test
# make torture   kills, fuzz, tampering, changing inputs and full disks, counted (15 minutes)
# make bench DATA=folder   every metric on the default judged and adversarial sets; fills
#                          docs/results.md and docs/results.html
# make density DATA=folder, make causalscore DATA=folder, make grade DATA=folder,
# make followups DATA=folder, make ratings DATA=folder
#                          what a metric is worth, beside baselines and ablations that are trained
#                          first (half an hour to two hours); fills docs/METRIC-results.md
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date

.PHONY: demo test torture lint bench density causalscore grade followups ratings bench-engines clean

demo: $(STAMP)
	$(BIN)/causerie models pull
	$(BIN)/causerie score examples/conversations.jsonl --speaker system \
	  --metrics density,causalscore,grade,cosine,relevance,perplexity,bertscore,embedding,bleu,rouge,overlap,length \
	  --percentiles --out demo/scores.csv --report demo/report.html --force
	@echo "open demo/report.html in a browser"

test: $(STAMP) lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

torture: $(STAMP)
	$(BIN)/causerie models pull
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/torture

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	@test -n "$(DATA)" || { echo "name the folder with the judged sets: make bench DATA=folder"; exit 2; }
	$(BIN)/causerie bench run --sets default --metrics all --data "$(DATA)" --out bench-results
	$(BIN)/causerie bench probe --metrics all --data "$(DATA)" --out bench-results
	{ cat bench-results/results.md; echo; cat bench-results/probe.md; echo; cat docs/more-results.md; } > docs/results.md
	cp bench-results/results.html docs/results.html

density causalscore grade followups ratings: $(STAMP)
	@test -n "$(DATA)" || { echo "name the folder with judged/, corpora/ and so on: make $@ DATA=folder"; exit 2; }
	$(BIN)/python benchmarks/$@_report.py "$(DATA)" bench-results/$@
	cp bench-results/$@/results.md docs/$@-results.md
	for picture in bench-results/$@/*.svg; do test -e "$$picture" && cp "$$picture" docs/; done; true

bench-engines: $(STAMP)
	$(BIN)/python benchmarks/likelihood.py
	$(BIN)/python benchmarks/encoder.py
	$(BIN)/python benchmarks/density.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/startup.py

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo build dist
