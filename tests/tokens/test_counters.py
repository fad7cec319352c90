import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import Session
from windowsill.errors import InputError
from windowsill.tokens import APPROXIMATIONS, VOCABULARIES, counter
from windowsill.tokens.counters import CHUNK, LONG

pytestmark = pytest.mark.unit

o200k = counter("o200k_base")


@pytest.mark.parametrize(
    ("vocabulary", "text", "tokens"),
    [
        ("o200k_base", "hello world", 2),
        ("o200k_base", "<|endoftext|>", 7),
        ("o200k_base", "", 0),
        ("o200k_base", "お誕生日おめでとう", 8),
        ("cl100k_base", "tiktoken is great!", 6),
        ("cl100k_base", "お誕生日おめでとう", 9),
        ("cl100k_base", "2 + 2 = 4", 7),
        ("llama3", "hello world", 2),
        ("gemma3", "hello world", 2),
    ],
)
def test_known_counts(vocabulary, text, tokens):
    """Counts equal the published ones; control tokens spelled out in a text are ordinary words."""
    assert counter(vocabulary).count(text) == tokens


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_vocabulary_counts_without_start_and_end_tokens(name):
    """An empty text has no tokens in any vocabulary, and a text has some."""
    assert counter(name).count("") == 0
    assert counter(name).count("The window is full.") in range(4, 8)


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("bytes/4", "abcde", 2),
        ("bytes/4", "日本語", 3),
        ("chars/4", "abcde", 2),
        ("chars/4", "日本語", 1),
        ("chars*0.5", "abcde", 2),
        ("chars*0.5", "", 0),
    ],
)
def test_approximations(name, text, tokens):
    """The approximations count as their names say (T6): quarters are rounded up, halves down."""
    assert counter(name).count(text) == tokens


@pytest.mark.parametrize("name", ["o200k_base", "mistral_v2", *APPROXIMATIONS])
@given(text=st.text(st.characters(exclude_categories=())))
def test_counting_never_fails(name, text):
    """Any string has a count, even one with half of a surrogate pair."""
    assert counter(name).count(text) >= 0


def test_lone_surrogates_count_as_one_sign_each():
    """A text that cannot be encoded is counted with a question mark for each broken character."""
    assert o200k.count("a \ud800 b") == o200k.count("a ? b")


@pytest.mark.parametrize(
    "text",
    ["the quick brown fox\n" * 30_000, "word " * 150_000, '{"key": [1, 2, 3]}, ' * 30_000],
    ids=["lines", "words", "json"],
)
def test_long_text_is_counted_in_pieces_with_the_same_result(text):
    """Text with words or lines has the same count in pieces as in one go, but for a token a piece."""
    assert len(text) > CHUNK
    pieces = len(text) // CHUNK + 1
    assert abs(o200k.count(text) - len(o200k._encode(text))) <= pieces


def test_one_unbroken_word_of_millions_of_characters_is_counted():
    """A single line of five million letters is counted, not refused."""
    assert o200k.count("a" * 5_000_000) == 625_000


def test_a_long_text_is_encoded_once(monkeypatch):
    """Its count is remembered for a while, as a fold weighs the same text several times; that of a short one is not."""
    encoded = []
    monkeypatch.setattr(o200k, "_encode", lambda text: encoded.append(text) or [0, 0])
    long = "once " * LONG
    assert [o200k.count(text) for text in (long, "short", long, "short")] == [2, 2, 2, 2]
    assert encoded == [long, "short", "short"]
    o200k._remembered.cache_clear()


def test_a_counter_is_loaded_once():
    """Asking twice for a vocabulary gives the same counter."""
    assert counter("o200k_base") is o200k


def test_unknown_name_lists_the_known_ones():
    """An unknown tokenizer is refused with the names that would do."""
    with pytest.raises(InputError, match=r"no tokenizer 'o300k'.*bytes/4.*o200k_base.*tokenizer\.json"):
        counter("o300k")


def test_missing_file_says_so():
    """A path that leads nowhere is refused as a missing file."""
    with pytest.raises(InputError, match="does not exist"):
        counter("/nowhere/tokenizer.json")


def test_file_that_is_no_tokenizer_says_so(tmp_path):
    """A JSON file that is no tokenizer is refused as unreadable."""
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="cannot be read"):
        counter(str(path))


def test_tokenizer_file_counts_without_its_template(tmp_path):
    """A Hugging Face tokenizer.json counts words and leaves out the start and end tokens it would add."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_word_tokenizer()))
    assert counter(str(path)).count("hello window hello") == 3


def _word_tokenizer():
    special = [
        {"id": i, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False}
        for i, text in enumerate(["[UNK]", "[CLS]", "[SEP]"])
    ]
    token = {name: {"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]")}
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "version": "1.0",
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token["[CLS]"], sequence, token["[SEP]"]],
            "pair": [token["[CLS]"], sequence, token["[SEP]"]],
            "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for i, n in ((1, "[CLS]"), (2, "[SEP]"))},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3, "window": 4},
        },
    }


def count_words(text):
    """Count words, as a user's own counter may."""
    return len(text.split())


def test_a_function_counts():
    """Whoever has a counter of their own gives it in the place of a name."""
    session = Session.open("s", budget=4_000, tokenizer=count_words, store=":memory:")
    session.add("one two three four five")
    assert session.composer.context.describe()["counter"].endswith("count_words")
    assert session.view.weight.prose == 5
