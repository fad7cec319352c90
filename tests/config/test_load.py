"""Settings from code, the environment and files: which wins, and what is said when one is wrong."""

import pytest

from windowsill import InputError, Session, SettingError
from windowsill.config import Settings, load
from windowsill.config.load import LARGEST
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration


def written(folder, text, name="windowsill.toml"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def held(folder, environ=None, **stated):
    return load(stated, folder=folder, environ=environ or {})


def test_with_nothing_stated_all_are_defaults(tmp_path):
    """And say so."""
    loaded = held(tmp_path)
    assert loaded.settings == Settings()
    assert loaded.origin("high") == "default"


def test_code_wins_over_the_environment_over_the_file(tmp_path):
    """One by one, and each origin is told."""
    folder = written(tmp_path, "high = 0.7\nlow = 0.2\noverhead = 5\nmodel = 'gpt-5'\n")
    loaded = held(folder, {"WINDOWSILL_HIGH": "0.75", "WINDOWSILL_OVERHEAD": "6"}, overhead=7, model=None)
    settings = loaded.settings
    assert (settings.low, settings.high, settings.overhead, settings.model) == (0.2, 0.75, 7, "gpt-5")
    assert [loaded.origin(name) for name in ("low", "high", "overhead")] == [
        str(tmp_path / "windowsill.toml"),
        "WINDOWSILL_HIGH",
        "code",
    ]


def test_the_nearest_file_upwards_is_the_one(tmp_path):
    """Files are not mixed."""
    written(tmp_path, "overhead = 1\nwindow = 9\n")
    below = written(tmp_path / "a", "overhead = 2\n") / "b" / "c"
    below.mkdir(parents=True)
    assert held(below).settings == Settings(overhead=2)


def test_the_table_of_a_pyproject_counts(tmp_path):
    """One without it is passed over, even a broken one; our own file in the same folder wins."""
    written(tmp_path, "[tool.windowsill]\noverhead = 3\n", "pyproject.toml")
    below = written(tmp_path / "a", "[project\n", "pyproject.toml")
    assert held(below).settings.overhead == 3
    assert held(below).origin("overhead") == f"{tmp_path / 'pyproject.toml'} [tool.windowsill]"
    written(tmp_path, "overhead = 4\n")
    assert held(below).settings.overhead == 4


def test_a_stated_file_is_the_one(tmp_path):
    """Whatever lies in the folder."""
    written(tmp_path, "overhead = 1\n")
    written(tmp_path, "overhead = 2\n", "other.toml")
    assert load(folder=tmp_path, environ={}, file=tmp_path / "other.toml").settings.overhead == 2


@pytest.mark.parametrize(
    ("text", "key", "value", "allowed"),
    [
        ("hihg = 0.7", "hihg", "0.7", "high \\(if that was meant\\)"),
        ("window = 'large'", "window", "'large'", "int"),
        ("window = -1", "window", "-1", "tokens above 0"),
        ("low = 2.0", "low", "2.0", "a share up to 1.0, or tokens as a whole number"),
        ("high = 0.4\nlow = 0.45", "low", "0.45", "at most the high mark"),
        ("wait = inf", "wait", "inf", "seconds from 0"),
        ("warn = -1", "warn", "-1", "tokens above 0"),
        ("[models.mine]\nwindw = 5", "models.mine.windw", "5", "window \\(if that was meant\\)"),
        ("high = '120%'", "high", "'120%'", "at most 100%"),
        ("preset = 'bold'", "preset", "'bold'", "balanced, conservative, aggressive"),
        ("strategy = []", "strategy", r"\[\]", "a strategy, or a list of them"),
        ("strategies = 5", "strategies", "5", "a table"),
        ("[strategies]\nmask = 5", "strategies.mask", "5", "a table"),
        ("[profiles.x]\nkeep = -1", "profiles.x.keep", "-1", "from 0 on"),
        ("[profiles]\nx = 5", "profiles", "{'x': 5}", "object"),
    ],
)
def test_a_wrong_value_is_told_with_file_key_value_and_range(text, key, value, allowed, tmp_path):
    """All four of them, in one line."""
    folder = written(tmp_path, text)
    with pytest.raises(SettingError, match=f"setting '{key}' is {value}; give .*{allowed}") as caught:
        held(folder)
    assert str(caught.value).startswith(str(tmp_path / "windowsill.toml") + ": ")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"high = =", "is not TOML: .*line 1"),
        (b"\xff", "is not text in UTF-8"),
        (b"a = " + b"[" * 20_000, "is nested too deeply"),
        (b"#" * (LARGEST + 1), "cannot be read: it is larger than 4,194,304 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(data, why, tmp_path):
    """With the line."""
    (tmp_path / "windowsill.toml").write_bytes(data)
    with pytest.raises(InputError, match=f"windowsill.toml {why}"):
        held(tmp_path)


def test_a_wrong_value_in_code_needs_no_place(tmp_path):
    """It is where the error is raised."""
    with pytest.raises(SettingError, match=r"^setting 'window' is -1"):
        held(tmp_path, window=-1)


def test_a_list_of_sizes_is_one_size(tmp_path):
    """TOML has no tuples."""
    assert held(written(tmp_path, "budget = [200000, 0.8]")).settings.budget == (200_000, 0.8)


def test_a_preset_is_overruled_by_what_is_stated_higher_up(tmp_path):
    """And overrules marks that are stated lower down."""
    folder = written(tmp_path, "preset = 'conservative'\n")
    assert held(folder, high=0.9).settings.high == 0.9
    folder = written(tmp_path, "high = 0.95\n")
    assert held(folder, preset="balanced").settings.high == 0.8
    assert held(folder, {"WINDOWSILL_LOW": "0.1", "WINDOWSILL_PRESET": "balanced"}).settings.low == 0.1


def test_a_strategy_has_the_settings_of_its_table(tmp_path):
    """Those behind its name win; tables of others do not matter."""
    folder = written(
        tmp_path,
        "strategy = 'mask'\n[strategies.mask]\nkeep = 5\nexempt = ['a', 'b']\n[strategies.condense]\nkeep = 1\n",
    )
    assert held(folder).settings.strategy == 'mask:keep=5,exempt=["a","b"]'
    assert held(folder, strategy="mask:keep=2").settings.strategy == 'mask:keep=2,exempt=["a","b"]'
    assert held(folder, strategies={"mask": {"keep": 9}}).settings.strategy == 'mask:keep=9,exempt=["a","b"]'


def test_a_list_of_strategies_is_a_pipeline(tmp_path):
    """Each stage with its table."""
    folder = written(tmp_path, "strategy = ['mask', 'condense:keep=2']\n[strategies.mask]\nkeep = 5\n")
    assert held(folder).settings.strategy == "mask:keep=5+condense:keep=2"


def test_tables_of_models_and_profiles_add_up(tmp_path):
    """Key by key; the stronger source wins where both state one."""
    folder = written(tmp_path, '[models.mine]\nwindow = 9000\nmax_output = 100\n[profiles."gpt-5"]\nkeep = 7\n')
    settings = held(folder, {"WINDOWSILL_MODELS": '{"mine": {"window": 8000}}'}, profiles={"x": {}}).settings
    assert settings.models == {"mine": {"window": 8_000, "max_output": 100}}
    assert settings.profiles == {"gpt-5": {"keep": 7}, "x": {}}


def test_a_plugin_json_is_the_weakest_source(tmp_path):
    """The settings file wins over it, key by key."""
    written(
        tmp_path,
        '{"contextStrategy": {"pluginId": "std-sliding-window-strategy", "config": {"keep": 3, "quote": 0.5}}}',
        "plugin.json",
    )
    assert held(tmp_path).settings.strategy == "sliding-window:keep=3,quote=0.5"
    written(tmp_path, "[strategies.sliding-window]\nkeep = 8\n")
    assert held(tmp_path).settings.strategy == "sliding-window:keep=8,quote=0.5"


def test_a_session_is_opened_with_what_was_loaded(tmp_path):
    """The profile of the model holds, and what is not stated stays unsaid, so that another model has its own."""
    folder = written(tmp_path, "overhead = 9\n[profiles.gpt-5]\nthreshold = 50\nkeep = 6\n")
    opening = held(folder, model="gpt-5").opening()
    assert opening.keys() == {"model", "overhead", "profiles"}
    with Session.open("s", store=MemoryStore(), **opening) as session:
        settings = session.composer.settings
        assert (settings.high, settings.strategy) == (0.5, "economy:keep=6")


def test_a_file_without_end_is_not_read_to_its_end(tmp_path):
    """Such as a device that was named by mistake."""
    with pytest.raises(InputError, match=r"/dev/zero cannot be read: it is larger than"):
        load(folder=tmp_path, environ={}, file="/dev/zero")


@pytest.mark.parametrize(("file", "why"), [("a\0b", "is not a path"), ("/", "cannot be read: is a directory")])
def test_what_is_no_file_is_told(file, why, tmp_path):
    """With an error of ours."""
    with pytest.raises(InputError, match=why):
        load(folder=tmp_path, environ={}, file=file)


def test_an_empty_file_and_a_mark_at_its_start_are_fine(tmp_path):
    """As some editors leave them."""
    assert held(written(tmp_path, "")).settings == Settings()
    (tmp_path / "windowsill.toml").write_bytes(b"\xef\xbb\xbfoverhead = 3")
    assert held(tmp_path).settings.overhead == 3


def test_a_folder_by_the_name_of_the_file_is_passed_over(tmp_path):
    """It holds no settings."""
    (tmp_path / "windowsill.toml").mkdir()
    assert held(tmp_path).settings == Settings()


def test_without_a_current_folder_there_is_no_file(tmp_path, monkeypatch):
    """Somebody removed it; what is stated otherwise holds."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load({"overhead": 4}, environ={}).settings.overhead == 4


def test_tables_that_are_nested_without_end_are_told_with_their_variable(tmp_path):
    """And not quoted without end."""
    with pytest.raises(SettingError, match=r"^WINDOWSILL_PROFILES: setting 'profiles' is ") as caught:
        load(folder=tmp_path, environ={"WINDOWSILL_PROFILES": '{"a":' * 20_000})
    assert len(str(caught.value)) < 500
