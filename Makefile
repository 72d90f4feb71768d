# A new user needs two commands: `make run` and `make test`. Both install what they need.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
DB     ?= crawld.db
WORKERS ?= 6
STAMP   = $(VENV)/.installed
DEV     = $(VENV)/.installed-dev

# The tests start hundreds of programs: each would compile its modules anew, 2 seconds of work.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check lint format bench torture fuzz soak storm dust mutants mutation bugs campaign peers clean

# `make run`                             live demo: a changing site on loopback and its mirror
# `make run SEED=URL CONTACT=you@host`   a polite mirror of a real site, kept in $(DB)
run: $(STAMP)
ifdef SEED
	@echo "crawld: starting the mirror; the first start takes some seconds"
	@$(BIN)/crawld mirror "$(SEED)" --db "$(DB)" $(if $(CONTACT),--contact "$(CONTACT)") $(ARGS)
else
	@echo "crawld: starting the demo; the first start takes some seconds"
	@$(BIN)/crawld demo $(ARGS)
endif

# `make test WORKERS=0 ARGS=tests/unit`   some of the tests, in one process
test: $(DEV) peers
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)

# unit and property tests, which compute and hardly wait: a process for each core, and one more
check: $(DEV)
	$(BIN)/pytest -n auto --dist worksteal tests/unit tests/property $(ARGS)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# fetch benchmark against its peers (Scrapy comes with the bench extra)
bench: $(DEV) peers
	$(BIN)/crawld bench fetch --json

# long tests: kills at named points and at random ones, and all hostile hosts instead of a part
# `make torture KILLS=1000`
KILLS ?= 1000
torture: $(DEV)
	$(BIN)/python -m tests.torture --kills $(KILLS) --json torture.json
	CRAWLD_KILLS=100 CRAWLD_HOSTILE=all $(BIN)/pytest tests/e2e/test_kill.py tests/hostile $(ARGS)

# new inputs for everything that reads what the world sends, found by coverage; findings become tests
# `make fuzz MINUTES=60`
MINUTES ?= 10
fuzz: $(DEV)
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(ARGS)

# hours of a daemon on real sockets: memory, files, disk and jitter over time, in soak.json and soak.svg
# `make soak HOURS=2`
HOURS ?= 2
soak: $(DEV)
	$(BIN)/crawld lab soak --hours $(HOURS) --json soak.json --plot soak.svg $(ARGS)

# a mirror of a MediaWiki of 500 pages during 15 minutes of changes, kills and an outage
storm: $(DEV) peers
	$(BIN)/python -m tests.peer.storm --kills --outage $(ARGS)

# rules for duplicate URLs: an nginx with twelve causes of them, mirrored; prints what they save
dust: $(DEV) peers
	$(BIN)/python -m tests.peer.dust_nginx $(ARGS)

# the tests of the science, run on copies of the source with a fault in it: each must be found
# `make mutants MODULE=crawld.core.revisit.price`   all small faults of a module or package, and its score
mutants: $(DEV)
ifdef MODULE
	CI=true $(BIN)/mutmut run "$(MODULE).*" $(ARGS)
	@$(BIN)/mutmut results
	@$(BIN)/python -m tests.mutants.score
else
	$(BIN)/python -m tests.mutants $(ARGS)
endif

# a random sample of the small faults of all these modules, each on the short tests that reach it
# `make mutation SAMPLE=160 DRAW=1 MOST_S=2`
SAMPLE ?= 160
DRAW   ?= 1
MOST_S ?= 2
mutation: $(DEV)
	CI=true $(BIN)/python -m tests.mutants.sample $(SAMPLE) $(DRAW) $(MOST_S)

# bugs of twelve kinds, each planted in a copy: after how many seeds of the universe it is found
bugs: $(DEV)
	$(BIN)/python -m tests.bugs $(ARGS)

# the daemon in the simulated worlds of many seeds; goes on where an interrupted campaign ended
# `make campaign SEEDS=1000 FROM=1`
SEEDS ?= 1000
FROM  ?= 1
campaign: $(DEV)
	$(BIN)/python -m tests.bugs.campaign $(FROM) $(SEEDS) campaign-$(FROM)-$(SEEDS).jsonl

# install nginx, MediaWiki and other peers of the end-to-end tests
peers:
	sh tests/peers.sh

$(BIN)/python:
	@echo "crawld: making an environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit("crawld needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "make: no venv module: apt-get install python3-venv"; exit 1; }

$(STAMP): pyproject.toml | $(BIN)/python
	@$(BIN)/python contrib/install.py
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	@$(BIN)/python contrib/install.py '.[dev]'
	@touch $(STAMP) $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants
