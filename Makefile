# make demo   set up, score the sample conversations, write demo/report.html
# make test   set up, lint, run every test
# make check  what takes seconds: ruff, the layers of the house, tests of the small rooms
# make format let ruff lay out the code and mend what it can
# make docs   the site, in build/site; nothing in it is loaded from elsewhere
# make torture   kills, fuzz, tampering, changing inputs and full disks, counted (15 minutes)
# make bench DATA=folder   the metrics on the default judged and adversarial sets, those of the
#                          language model on 1,000 items of each; fills docs/results.md, .parquet
#                          and .html, and docs/likelihood-results.md
# make density DATA=folder, make causalscore DATA=folder, make grade DATA=folder,
# make followups DATA=folder, make ratings DATA=folder
#                          what a metric is worth, beside baselines and ablations that are trained
#                          first (half an hour to two hours); fills docs/METRIC-results.md
# make ranking DATA=folder  density beside the untrained cosine on held-out dialogues: docs/ranking/
# make figures DATA=folder  figures, statistics, case studies of the papers: docs/figures.md
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
QUICK := density,causalscore,grade,cosine,bertscore,cosine-ref,embedding,bleu,rouge,meteor
RANKED := density,density-dailydialog=density:artifact=density-dailydialog,cosine
STAMP := $(VENV)/.up-to-date

.PHONY: demo test check format docs torture lint bench figures ranking density causalscore grade followups ratings bench-engines clean

demo: $(STAMP)
	$(BIN)/causerie models pull
	$(BIN)/causerie score examples/conversations.jsonl --speaker system \
	  --metrics quality,faults,density,causalscore,grade,cosine,relevance,perplexity,bertscore,embedding,bleu,rouge,overlap,length \
	  --percentiles --out demo/scores.csv --report demo/report.html --force
	@echo "open demo/report.html in a browser"

test: $(STAMP) lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 0 -m "not slow and not default_models" \
	  tests/test_dialogue.py tests/test_documents.py tests/test_licences.py tests/render tests/stats tests/text

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	$(BIN)/python docs/_site.py build/site
	@echo "open build/site/index.html in a browser"

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
	$(BIN)/causerie bench run --sets default --metrics $(QUICK) --max-items 1500 --data "$(DATA)" --out bench-results
	$(BIN)/causerie bench probe --metrics $(QUICK) --data "$(DATA)" --out bench-results
	$(BIN)/causerie bench run --sets default --metrics perplexity,relevance,density,cosine --max-items 1000 \
	  --data "$(DATA)" --out bench-results/likelihood
	{ cat bench-results/results.md; echo; cat bench-results/probe.md; echo; cat docs/more-results.md; } > docs/results.md
	cp bench-results/results.parquet bench-results/results.html docs/
	cp bench-results/likelihood/results.md docs/likelihood-results.md

density causalscore grade followups ratings: $(STAMP)
	@test -n "$(DATA)" || { echo "name the folder with judged/, corpora/ and so on: make $@ DATA=folder"; exit 2; }
	$(BIN)/python benchmarks/$@_report.py "$(DATA)" bench-results/$@
	cp bench-results/$@/results.md docs/$@-results.md
	for picture in bench-results/$@/*.svg; do test -e "$$picture" && cp "$$picture" docs/; done; true

# How often density finds the human response, and what corrupted ones score: data for docs/density.md.
ranking: $(STAMP)
	@test -n "$(DATA)" || { echo "name the folder with corpora/: make ranking DATA=folder"; exit 2; }
	for corpus in chitchat selfdialogue dailydialog; do \
	  $(BIN)/causerie bench rank --data "$(DATA)/corpora/$$corpus.test.jsonl.gz" \
	    --metrics $(RANKED) --max-items 400 --out docs/ranking/$$corpus.test.json && \
	  $(BIN)/causerie bench rank --data "$(DATA)/corpora/$$corpus.valid.jsonl.gz" --attacks \
	    --metrics $(RANKED) --max-items 500 --out docs/ranking/$$corpus.attacks.json || exit 1; \
	done

figures: $(STAMP)
	@test -n "$(DATA)" || { echo "name the folder with causal/ and judged/: make figures DATA=folder"; exit 2; }
	$(BIN)/python benchmarks/papers_figures.py "$(DATA)" bench-results/figures
	cp bench-results/figures/* docs/

bench-engines: $(STAMP)
	$(BIN)/python benchmarks/likelihood.py
	$(BIN)/python benchmarks/encoder.py
	$(BIN)/python benchmarks/density.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/startup.py

$(STAMP): pyproject.toml research/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" -e research
	touch $@

clean:
	rm -rf $(VENV) demo build dist
