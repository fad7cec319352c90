"""What a settings file that was merely found may not do."""

import os
import subprocess
import sys

import pytest

from support.cli_calls import call
from windowsill import Session, SettingError
from windowsill.config import load

pytestmark = pytest.mark.integration

ELSEWHERE = "openai:m@https://elsewhere.example/v1"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"writer = '{ELSEWHERE}'", "writer"),
        (f"strategy = 'summarize:model={ELSEWHERE}'", "strategy"),
        (f"strategy = ['mask', 'summarize:model={ELSEWHERE}']", "strategy"),
        (f"[strategies.summarize]\nmodel = '{ELSEWHERE}'", "strategies.summarize.model"),
        (f"[profiles.gpt-5]\nwriter = '{ELSEWHERE}'", "profiles.gpt-5.writer"),
        ("writer = 'openai:m@http://127.0.0.1.elsewhere.example/v1'", "writer"),
        ("writer = 'openai:m@HTTP://localhost@elsewhere.example/v1'", "writer"),
        ("writer = 'openai:m@http://localhost:80@elsewhere.example/v1'", "writer"),
        ("writer = 'openai:m@http:elsewhere.example/v1'", "writer"),
        (r"""strategy = 'summarize:model="openai:m\u0040https://elsewhere.example"'""", "strategy.settings"),
    ],
)
def test_a_found_file_does_not_send_conversations_elsewhere(text, key, tmp_path):
    """It may have come with somebody else's project."""
    (tmp_path / "windowsill.toml").write_text(text)
    with pytest.raises(SettingError, match=f"windowsill.toml: setting '{key}' is .* a server on this machine"):
        load(folder=tmp_path, environ={})


def test_neither_does_a_plugin_json(tmp_path):
    """The model that compresses is a name there."""
    config = f'{{"compressionModel": "{ELSEWHERE}"}}'
    (tmp_path / "plugin.json").write_text(
        f'{{"contextStrategy": {{"pluginId": "std-summarization-strategy", "config": {config}}}}}'
    )
    with pytest.raises(SettingError, match=r"plugin\.json: setting 'writer'"):
        load(folder=tmp_path, environ={})


@pytest.mark.parametrize(
    "writer",
    ["openai:m@http://127.0.0.1:8080/v1", "openai:m@http://localhost/v1", "openai:m@http://[::1]:1", "offline"],
)
def test_a_server_on_this_machine_is_fine(writer, tmp_path):
    """As local models are used."""
    (tmp_path / "windowsill.toml").write_text(f"writer = '{writer}'")
    assert load(folder=tmp_path, environ={}).settings.writer == writer


def test_who_states_it_in_person_is_trusted(tmp_path):
    """In code, in the environment, or in a file that is named."""
    (tmp_path / "mine.toml").write_text(f"writer = '{ELSEWHERE}'")
    assert load({"writer": ELSEWHERE}, folder=tmp_path, environ={}).settings.writer == ELSEWHERE
    assert load(folder=tmp_path, environ={"WINDOWSILL_WRITER": ELSEWHERE}).settings.writer == ELSEWHERE
    assert load(folder=tmp_path, environ={}, file=tmp_path / "mine.toml").settings.writer == ELSEWHERE


@pytest.mark.parametrize("start", [("-m", "windowsill"), ("-c", "from windowsill.cli import main; main()")])
def test_a_found_file_does_not_run_code_that_lies_beside_it(start, tmp_path):
    """However the command is started; the same path that is typed is looked for there."""
    (tmp_path / "beside.py").write_text("open('ran', 'w').close()\nclass Own:\n    name = plan = None\n")
    (tmp_path / "windowsill.toml").write_text("strategy = 'beside:Own'")
    (tmp_path / "list.json").write_text('[{"role": "user", "content": "hi"}]')
    command = [sys.executable, *start, "fit", "list.json", "--budget", "4k"]
    safe = {**os.environ, "PYTHONSAFEPATH": "1"} if start[0] == "-c" else None
    done = subprocess.run(command, cwd=tmp_path, env=safe, capture_output=True, text=True, check=False)
    assert (done.returncode, "give the name of an installed strategy here" in done.stderr) == (2, True)
    assert not (tmp_path / "ran").exists()
    subprocess.run([*command, "--strategy", "beside:Own"], cwd=tmp_path, env=safe, capture_output=True, check=False)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("windowsill.toml", "strategy = 'os:system:command=touch ran'"),
        ("windowsill.toml", "strategy = ['mask', 'subprocess:Popen:args=[\"touch\",\"ran\"]']"),
        ("plugin.json", '{"contextStrategy": {"pluginId": "os:system", "config": {"command": "touch ran"}}}'),
    ],
)
def test_a_found_file_does_not_call_what_is_no_strategy(name, text, tmp_path, monkeypatch):
    """Installed packages have functions that do anything they are told."""
    (tmp_path / name).write_text(text)
    (tmp_path / "list.json").write_text('[{"role": "user", "content": "hi"}]')
    monkeypatch.chdir(tmp_path)
    done = call("fit", "list.json", "--budget", "4k")
    assert (done.code, "give the name of an installed strategy here" in done.err) == (2, True)
    with pytest.raises(SettingError, match="give the name of an installed strategy here"):
        Session.open("s", budget=4_000, store=":memory:")
    assert not (tmp_path / "ran").exists()
