from __future__ import annotations

import pytest

from support.cli_calls import anthropic_turns, call, openai_turns, saved

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("turns", [anthropic_turns, openai_turns])
def test_sound_request_is_valid(tmp_path, turns):
    """A conversation that its provider accepts is valid."""
    assert call("validate", saved(tmp_path / "x.json", turns(3))) == (0, "valid\n", "")


def test_problems_are_listed_with_rule_place_and_remedy(tmp_path):
    """A call without its result is told where it is, and the exit code is 1."""
    done = call("validate", saved(tmp_path / "x.json", anthropic_turns(1)[:2]))
    assert done.code == 1
    assert done.out.splitlines()[1].split()[:2] == ["anthropic.call-has-result", "[1].content[0]"]
    assert "add its result" in done.out


def test_json_has_the_same_problems(tmp_path):
    """`--json` gives each problem with its four parts."""
    done = call("validate", saved(tmp_path / "x.json", anthropic_turns(1)[:2]), "--json")
    assert (done.code, done.json["valid"]) == (1, False)
    assert done.json["problems"][0]["rule"] == "anthropic.call-has-result"
    assert set(done.json["problems"][0]) == {"rule", "where", "what", "remedy"}


def test_format_can_be_stated():
    """The same list is judged by the rules of the format that was named."""
    message = b'[{"role":"assistant","content":"hi"}]'
    assert call("validate", "-", "--format", "openai", input=message).code == 0
    assert call("validate", "-", "--format", "anthropic", input=message).code == 1
