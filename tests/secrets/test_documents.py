from __future__ import annotations

import json
from collections import namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.secret_keys import FORMATS, drawn, keys
from windowsill.secrets import Redactor
from windowsill.secrets.documents import redact_json, redact_text, redact_value

pytestmark = pytest.mark.unit

TOKEN = "gh" + "p_" + drawn(3, 36)
RANDOM = drawn(5, 40)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(value=values, ascii_only=st.booleans())
def test_document_without_secrets_stays_byte_for_byte(value, ascii_only):
    """However it is spelled."""
    data = json.dumps(value, ensure_ascii=ascii_only, indent=1).encode("utf-8", "replace")
    assert redact_json(data) is data


@given(key=keys, ascii_only=st.booleans())
def test_key_in_any_string_is_taken_out_and_the_document_stays_one(key, ascii_only):
    """Only the string it stands in changes."""
    _, frame, secret = key
    document = {"kept": 1, "said": ["日本" + " " + frame.replace("{}", secret) + " 語", "kept too"]}
    clean = json.loads(redact_json(json.dumps(document, ensure_ascii=ascii_only).encode()))
    assert secret not in clean["said"][0]
    assert clean == {"kept": 1, "said": [clean["said"][0], "kept too"]}


def test_everything_around_a_secret_stays_as_it_was_spelled():
    """Blanks, numbers and escapes are not spelled anew."""
    data = b'{ "a" : 1.50e3,\n "password" :"hunter2", "u": "\\u00e4\\/" }'
    assert redact_json(data) == b'{ "a" : 1.50e3,\n "password" :"[secret: password]", "u": "\\u00e4\\/" }'


def test_escapes_do_not_hide_a_secret():
    """What a string says counts, not how it is spelled."""
    spelled = "".join(f"\\u{ord(char):04x}" for char in TOKEN)
    assert redact_json(f'["{spelled}"]'.encode()) == b'["[secret: github-token]"]'


def test_ids_and_signatures_are_not_taken_for_chance():
    """They are random, and what they belong to breaks without them; a known key under such a name is still one."""
    value = {"id": RANDOM, "callId": RANDOM, "signature": RANDOM, "note": RANDOM, "user_id": TOKEN}
    assert redact_value(value) == {
        **value,
        "note": "[secret: high-entropy]",
        "user_id": "[secret: github-token]",
    }


def test_name_counts_for_the_value_after_it():
    """For the items of a list too; not for an object, and not for what comes later."""
    value = {"password": {"hint": "hunter2"}, "list": [{"password": ["letmein", "hunter2"]}, "hunter2"], "x": "hunter2"}
    clean = {**value, "list": [{"password": ["[secret: password]", "[secret: password]"]}, "hunter2"]}
    assert redact_value(value) == clean
    assert json.loads(redact_json(json.dumps(value).encode())) == clean


def test_text_that_is_json_stays_json():
    """Also where a plain text would be taken out over the end of a string."""
    _, key = FORMATS["private-key"](1)
    lines = json.dumps({"lines": key.split("\n"), "next": "x"})
    assert json.loads(redact_text(lines))["next"] == "x"
    assert redact_text('{"password": "hunter2"') == '{"password": "[secret: password]"'


def test_what_is_allowed_stays_in_documents():
    """Under the name of a secret too."""
    assert redact_value({"password": "hunter2"}, Redactor(allow=["hunter2"])) == {"password": "hunter2"}


@pytest.mark.parametrize("pair", [{"name": "DB_PASSWORD", "value": "letmein"}, {"Key": "apiKey", "Value": "letmein"}])
def test_a_pair_of_name_and_value_is_an_assignment(pair):
    """As environments, headers and variables of a state are spelled; in documents and in values alike."""
    name = next(iter(pair))
    found = json.loads(redact_json(json.dumps([pair, {name: "user", "value": "letmein"}]).encode(), Redactor()))
    assert found == redact_value([pair, {name: "user", "value": "letmein"}], Redactor())
    assert [[*each.values()][1][:8] for each in found] == ["[secret:", "letmein"]


def test_a_tuple_with_names_of_its_own_is_gone_through():
    """It becomes a plain one where something is taken out."""
    pair = namedtuple("pair", "a b")("password=hunter2", 1)
    assert redact_value(pair, Redactor()) == ("password=[secret: password]", 1)


HARD = (
    "4111 1111 1111 1111",
    "pw\u200bd=hunter2",
    drawn(1, 24),
    "a\n" + drawn(2, 30),
    "nothing",
    "key",
    "one two",
    '"\\',
)
texts = st.one_of(keys.map(lambda key: key[1].replace("{}", key[2])), st.sampled_from(HARD))


@given(rows=st.lists(st.one_of(texts, st.dictionaries(texts, texts, max_size=2), st.lists(texts, max_size=2))))
def test_values_are_redacted_together_as_they_are_one_by_one(rows):
    """One look tells which of them may hold a secret: none that does is passed over, whatever is around it."""
    for redactor in (Redactor(), Redactor(extra=["two"]), Redactor(entropy=False)):
        assert redact_value(rows, redactor) == [redact_value(row, redactor) for row in rows]
    named = [redact_value({"passwords": row})["passwords"] for row in rows]
    assert redact_value({"passwords": rows})["passwords"] == named
    assert redact_value([*rows, object], Redactor())[:-1] == redact_value(rows, Redactor())
