"""What settings files that were merely found, exports and snapshots may not do."""

import os
import subprocess
import sys

import msgspec
import pytest

from support.cli_calls import call
from windowsill import Session, SettingError
from windowsill.config import Settings, load
from windowsill.config.load import without_reach
from windowsill.session.export import export_session, import_session
from windowsill.store.memory import MemoryStore

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
        ("windowsill.toml", "strategy = 'mask:os:system:command=touch ran'"),
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


FOREIGN = {
    "writer": ELSEWHERE,
    "user": "me",
    "project": "shop",
    "scope": "project",
    "strategy": "beside:Own",
    "tokenizer": "/etc/hosts",
    "profiles": {"gpt-5": {"writer": ELSEWHERE, "keep": 4}},
}
"""Settings with which a file would reach beyond its own conversation."""


@pytest.fixture
def foreign():
    """An export of somebody else, who wrote into it what they liked."""
    place = MemoryStore()
    with Session.open("s", model="gpt-5", budget=4_000, store=place) as session:
        session.add("hello")
    place.set_settings("s", msgspec.json.encode(Settings(model="gpt-5", budget=4_000, **FOREIGN)))
    return list(export_session(place, "s", secrets=True))


def test_an_import_decides_nothing_about_keys_code_and_other_sessions(foreign, tmp_path, monkeypatch):
    """Its writer, strategy by path, file of a tokenizer, user, project and scope are left out; the rest stays."""
    (tmp_path / "beside.py").write_text("open('ran', 'w').close()\nclass Own:\n    name = plan = None\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    store = MemoryStore()
    import_session(store, foreign)
    with Session.open("s", store=store) as session:
        wanted = Settings(model="gpt-5", budget=4_000, profiles={"gpt-5": {"keep": 4}})
        assert (session.settings, [each.text for each in session.messages()]) == (wanted, ["hello"])
    assert not (tmp_path / "ran").exists()


def test_an_import_of_a_file_of_ones_own_takes_everything(foreign):
    """Whoever trusts the file gets its settings as they were."""
    store = MemoryStore()
    import_session(store, foreign, trusted=True)
    assert msgspec.json.decode(store.info("s").settings, type=Settings).writer == ELSEWHERE


def test_the_command_says_what_it_did_not_take(foreign, tmp_path):
    """Each is named, with the option that takes it."""
    file, place = tmp_path / "s.jsonl", str(tmp_path / "store")
    file.write_bytes(b"\n".join(foreign))
    done = call("sessions", "import", str(file), "--store", place)
    names = ", ".join(sorted(FOREIGN))
    assert (done.code, f"not taken from the file: {names}; --trust" in done.err) == (0, True)
    done = call("sessions", "import", str(file), "--store", place, "--id", "t", "--trust")
    assert (done.code, "not taken" in done.err) == (0, False)


def test_a_snapshot_decides_as_little(tmp_path, caplog):
    """The log names what was left out; what is stated beside it wins."""
    with Session.open("s", model="gpt-5", budget=4_000, store=tmp_path / "a", writer=ELSEWHERE, project="p") as session:
        session.add("hello")
        path = session.write_snapshot()
    with Session.from_snapshot(path, store=tmp_path / "b", project="mine") as copy:
        assert (copy.settings.writer, copy.settings.project, copy.settings.budget) == ("offline", "mine", 4_000)
    assert "not taken from the snapshot: project, writer" in caplog.text
    with Session.from_snapshot(path, store=tmp_path / "c", trusted=True) as own:
        assert own.settings == session.settings


def test_a_model_in_the_settings_of_a_strategy_is_left_out():
    """It is given the conversation too; what else is stated for the strategy stays."""
    line = f"mask:keep=5+condense:keep=4,model={ELSEWHERE}"
    limited, dropped = without_reach(Settings(strategy=line), lambda name: name in ("mask", "condense"))
    assert (limited.strategy, dropped) == ("mask:keep=5+condense:keep=4", ("strategy",))
