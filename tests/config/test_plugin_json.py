"""The `contextStrategy` of a plugin.json."""

import json

import pytest

from windowsill import InputError, SettingError
from windowsill.config.load import find_plugin, from_plugin

pytestmark = pytest.mark.unit


def stated(**context):
    return from_plugin("plugin.json", {"contextStrategy": {"type": "plugin", **context}})


def test_the_example_of_the_specification_is_read():
    """Its model becomes the writer, its threshold a setting of the strategy."""
    config = {"compressionModel": "gemini-1.5-flash", "threshold": 20}
    assert stated(pluginId="std-summarization-strategy", config=config) == {
        "strategy": "summarize",
        "strategies": {"summarize": {"threshold": 20}},
        "writer": "gemini:gemini-1.5-flash",
    }


@pytest.mark.parametrize(
    ("plugin", "strategy"),
    [
        ("std-sliding-window-strategy", "sliding-window"),
        ("std-summarization-strategy", "summarize"),
        ("std-extraction-strategy", "extract"),
        ("windowsill-quiet", "windowsill-quiet"),
    ],
)
def test_the_standard_names_are_ours_and_others_are_plug_ins(plugin, strategy):
    """Without a config there are no settings."""
    assert stated(pluginId=plugin) == {"strategy": strategy}


def test_a_schema_reaches_the_extraction():
    """As it is."""
    schema = {"type": "object", "properties": {"destination": {"type": "string"}}}
    said = stated(pluginId="std-extraction-strategy", config={"schema": schema})
    assert said["strategies"] == {"extract": {"schema": schema}}


def test_the_config_of_a_plug_in_is_its_own():
    """Its keys are checked by the strategy itself."""
    assert stated(pluginId="quiet", config={"howLoud": 3})["strategies"] == {"quiet": {"howLoud": 3}}


@pytest.mark.parametrize(
    ("context", "key", "allowed"),
    [
        ({"type": "builtin", "pluginId": "x"}, "type", "'plugin'"),
        ({}, "pluginId", "std-sliding-window-strategy"),
        ({"pluginId": "a b"}, "pluginId", "the name of a plug-in"),
        ({"pluginId": "x", "config": []}, "config", "an object"),
        ({"pluginId": "x", "colour": 1}, "colour", "type, pluginId, config"),
        ({"pluginId": "std-summarization-strategy", "config": {"treshold": 1}}, "config.treshold", "threshold"),
        ({"pluginId": "std-summarization-strategy", "config": {"threshold": 0}}, "config.threshold", "from 1 on"),
        ({"pluginId": "std-summarization-strategy", "config": {"threshold": True}}, "config.threshold", "from 1 on"),
        (
            {"pluginId": "std-summarization-strategy", "config": {"compressionModel": "nobody-knows-it"}},
            "config.compressionModel",
            "Anthropic, OpenAI or Google",
        ),
        ({"pluginId": "std-extraction-strategy", "config": {"schema": 5}}, "config.schema", "a JSON schema"),
        ({"pluginId": "std-sliding-window-strategy", "config": {"keep": -1}}, "config.keep", "from 0 on"),
        ({"pluginId": "std-sliding-window-strategy", "config": {"quote": 2}}, "config.quote", "from 0 to 1"),
    ],
)
def test_what_is_wrong_is_told_with_file_key_and_range(context, key, allowed):
    """For every field of it."""
    with pytest.raises(SettingError, match=f"^plugin.json: setting 'contextStrategy.{key}' is .*{allowed}"):
        stated(**context)


def test_a_context_strategy_must_be_an_object():
    """Not a name."""
    with pytest.raises(SettingError, match="'contextStrategy' is 'x'; give an object"):
        from_plugin("plugin.json", {"contextStrategy": "x"})


def test_a_plugin_json_of_somebody_else_is_passed_over(tmp_path):
    """The next one upwards is looked at."""
    below = tmp_path / "a"
    below.mkdir()
    (below / "plugin.json").write_text("{broken, and not ours")
    (tmp_path / "plugin.json").write_text(json.dumps({"contextStrategy": {"pluginId": "x"}}))
    found = find_plugin(below)
    assert found is not None
    assert found[0] == str(tmp_path / "plugin.json")


@pytest.mark.parametrize("text", ['{"contextStrategy": ', '["contextStrategy"]', '{"contextStrategy":' * 20_000])
def test_one_that_is_ours_and_broken_is_told(text, tmp_path):
    """With its path."""
    (tmp_path / "plugin.json").write_text(text)
    with pytest.raises(InputError, match=r"plugin\.json is not "):
        find_plugin(tmp_path)
