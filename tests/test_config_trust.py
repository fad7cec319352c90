"""What a settings file that was merely found may not do."""

import pytest

from windowsill import SettingError
from windowsill.config import load

pytestmark = pytest.mark.unit

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
