from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.secret_keys import drawn, keys, seeds
from windowsill.errors import InputError, SettingError
from windowsill.secrets import Redactor, Secret, default_redactor, find, redact
from windowsill.secrets.detectors import find_assignments, formats
from windowsill.secrets.redactor import _COLUMNS, _NAMES, _hints, find_in_columns, kinds

pytestmark = pytest.mark.unit

TOKEN = "gh" + "p_" + drawn(3, 36)

words = st.text(st.characters(codec=None), max_size=20)
pieces = st.one_of(
    words,
    keys.map(lambda key: key[1].replace("{}", key[2])),
    keys.map(lambda key: key[2]),
    seeds.map(lambda seed: drawn(seed, 33)),
    st.sampled_from(
        ["password=", '"', "[secret: ", "]", "id ", "commit ", "://", "-----BEGIN ", "\\n", "token: ", "."]
    ),
    st.sampled_from([f"[secret: {kind}]" for kind in sorted(kinds())]),
)
texts = st.lists(pieces, max_size=8).map("".join)


# fmt: off
stated = st.sampled_from([
    "PIN", " code", "is ", ": ", " ", "1234", "Bearer", "Basic", "\n", "\r\n", "login ", "user ", "bob", "password ",
    " / ", "x9y8z7w6", "seed phrase", "one two three four five six seven eight nine ten eleven twelve", "https", "://",
    "bob:", "hunter2@", "host", "CREATE USER ", "'hunter2x'", '\\"auth', '\\": \\"', "dXNlcjpodW50ZXIy", "visa ",
    "5500005555555559", "name,password\n", "bob,hunter2x\n", "| token |", "value: ", "sk_live_", "sk-", "SK", "xoxb-",
    "INSERT INTO t (id, password) VALUES (1, 'hunter2x')", "5", "K", "\\n", "+", drawn(5, 24), drawn(6, 52),
    drawn(7, 26) + ".abcdef." + drawn(8, 30),
])
# fmt: on


@given(st.one_of(texts, st.lists(st.one_of(stated, pieces), max_size=8).map("".join)))
def test_no_detector_is_left_out_that_would_find_something(text):
    """The words and expressions that call a detector stand in every text in which it finds a secret."""
    data = text.encode("utf-8", "surrogatepass")
    words, owners = _hints()
    called = {owners[place] for place in words.find(data)}
    finding = {place for place, format in enumerate(formats()) if any(format.find(data))}
    finding |= {_NAMES} if any(find_assignments(data)) else set()
    finding |= {_COLUMNS} if any(find_in_columns(data)) else set()
    assert finding <= called


@given(text=texts)
def test_what_is_clean_stays_as_it_is(text):
    """Taking secrets out twice is taking them out once, whatever stands beside them."""
    once = redact(text)
    assert redact(once) == once
    assert find(once) == []


@given(text=texts)
def test_found_secrets_are_what_is_replaced(text):
    """They are in order, apart from each other, and everything between them is kept."""
    clean, end = "", 0
    for each in find(text):
        assert end <= each.start < each.end
        clean += text[end : each.start] + f"[secret: {each.kind}]"
        end = each.end
    assert redact(text) == clean + text[end:]


def test_places_are_counted_in_characters():
    """Also behind characters that are several bytes, or no character at all."""
    for before in ("", "日本語 ", "\ud800 ", "𝄞 "):
        assert find(before + TOKEN) == [Secret("github-token", len(before), len(before) + 40)]


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_a_sign_is_no_secret(kind):
    """Not even the one that reads like an assignment."""
    text = f"password = [secret: {kind}] and token=[secret: {kind}]"
    assert redact(text) == text


def test_what_follows_a_sign_is_not_assigned_to_it():
    """An address stays behind the sign for its password."""
    text = "postgresql://app:[secret: url-password]@db.example7:5432/x"
    assert redact(text) == text


def test_no_word_hides_behind_brackets():
    """Only signs of kinds that exist are passed over."""
    assert redact("[secret: hunter22x9k]") == "[secret: [secret: secret]]"


def test_text_without_secrets_is_the_same_object():
    """Most texts are; they cost no copy."""
    text = "nothing to see here, 42 times"
    assert redact(text) is text


def test_a_key_says_what_it_is_whatever_it_is_assigned_to():
    """The format is surer than the name."""
    assert redact(f"PASSWORD={TOKEN}") == "PASSWORD=[secret: github-token]"


def test_extra_patterns_are_taken_out():
    """A pattern of the user's; with a group, only the group."""
    house = Redactor(extra=[r"HOUSE-\d{4}", r"badge (\p{L}+)"])
    assert house.redact("HOUSE-1234 and badge größe.") == "[secret: extra] and badge [secret: extra]."


@given(text=texts)
def test_extra_patterns_leave_what_is_clean(text):
    """Even one that matches letters of a sign, or nothing."""
    greedy = Redactor(extra=["e", "x*", "secret"])
    assert greedy.redact(greedy.redact(text)) == greedy.redact(text)


def test_allowed_strings_stay():
    """Exactly those; a longer secret that begins like one does not."""
    public = Redactor(allow=[TOKEN])
    assert public.redact(f"{TOKEN} {TOKEN}x") == f"{TOKEN} [secret: github-token]"


@pytest.mark.parametrize("extra", ["(", r"(?=a)", r"\1"])
def test_pattern_that_cannot_be_used_is_refused(extra):
    """The error says what to write instead."""
    with pytest.raises(InputError, match="write it in RE2 syntax"):
        Redactor(extra=[extra])


@pytest.mark.parametrize("given_", [{"extra": "abc"}, {"allow": [""]}, {"allow": [b"x"]}])
def test_options_are_lists_of_texts(given_):
    """A single text would be taken letter by letter."""
    with pytest.raises(SettingError, match="a list of texts"):
        Redactor(**given_)


MEGABYTES = 5_000_000
SOME = 200_000


@pytest.mark.growth
@pytest.mark.parametrize(
    ("unit", "size"),
    [
        ("a", MEGABYTES),
        (drawn(1, 4_000), MEGABYTES),
        ("-----BEGIN ", MEGABYTES),
        ("-----BEGIN PRIVATE KEY-----\n", SOME),
        ("password=", SOME),
        ("password='x\" ", SOME),
        ("eyJ.", SOME),
        ("://a:b", SOME),
        ("\\", SOME),
        ("aB1-id ", SOME),
    ],
)
def test_hostile_text_is_gone_through(unit, size):
    """Megabytes of beginnings that never end take no more than their length, and leave nothing to be found."""
    clean = redact(unit * (size // len(unit)))
    assert redact(clean) is clean


def test_noise_does_not_explain_the_noise_behind_it():
    """Else one after the other would be found, each in a pass of its own."""
    text = "".join(f"{drawn(seed, 30)}7x-id " for seed in range(50))
    assert len(default_redactor()._round(text.encode())) == len(find(text))


def test_many_secrets_take_one_pass_each():
    """Keys without anything between them are no chain that comes apart one at a time."""
    text = "".join("gh" + "p_" + drawn(seed, 36) + "/" for seed in range(2_000))
    assert redact(text).count("[secret: github-token]") == 2_000


@pytest.mark.growth
def test_what_is_allowed_is_looked_up_and_not_gone_through():
    """A short text that stands everywhere costs no more for each secret that there is."""
    key = "ghp_" + "aB3dE5fG7h" * 4
    text = f"{key} a " * 30_000
    assert Redactor(allow=["a", "3"]).redact(text) == "[secret: github-token] a " * 30_000
