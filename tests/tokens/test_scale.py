import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.pictures import png
from windowsill.messages import Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown, text_message
from windowsill.tokens import Calibration, Scale, Weight, counter, framing, image_rule, media_size

pytestmark = pytest.mark.unit

PNG = base64.b64encode(png(200, 200)).decode()


def scale(name="generic", vocabulary="o200k_base", calibration=None):
    return Scale(counter(vocabulary), framing=framing(name), images=image_rule("anthropic"), calibration=calibration)


def message(*blocks, **fields):
    return Message(role="user", blocks=blocks, **fields)


def test_text_message():
    """A message weighs its words and the framing around it."""
    weight = scale("openai").weigh(text_message("user", "hello world"))
    assert (weight.prose, weight.overhead) == (2, 4)
    assert scale("openai").tokens(weight) == 6


def test_each_kind_is_counted_apart():
    """Prose, code, JSON and Chinese go into their own columns."""
    weight = scale().weigh(
        message(
            Text(text="Some words."),
            Text(text="x = [f(y) for y in z];"),
            Text(text='{"a": 1, "b": "two"}'),
            Text(text="窗口已满"),
        )
    )
    assert min(weight.prose, weight.code, weight.json, weight.cjk) > 0


def test_whole_tool_call_is_counted():
    """Ids, name, arguments and result of a call all weigh something."""
    call = ToolUse(id="call_1", name="search", arguments='{"query":"windows"}')
    result = ToolResult(tool_use_id="call_1", content=(Text(text="three windows found"),))
    words, weight = counter("o200k_base"), scale("generic").weigh(message(call, result))
    assert weight.json == words.count("search") + words.count(call.arguments)
    assert weight.prose == words.count("three windows found")
    assert weight.overhead == 5 + 10 + 6 + 2 * words.count("call_1")


def test_anthropic_counts_values_and_a_price_for_each_argument():
    """With Anthropic an argument weighs its value, without JSON's quotes, and a fixed framing; ids are free."""
    call = ToolUse(id="toolu_01T7M9PavPbk12ZmgNTwAom9", name="Bash", arguments='{"command":"ls\\n","limit":5}')
    words, weight = counter("o200k_base"), scale("anthropic").weigh(message(call))
    assert weight.json == sum(words.count(text) for text in ("Bash", "ls\n", "5"))
    assert weight.overhead == 4 + 20 + 2 * 20


def test_reasoning_is_counted_and_its_signature_is_not():
    """Signed reasoning costs more than its shown words with Anthropic; the signature only has bytes."""
    plain = scale("anthropic").weigh(message(Reasoning(text="one two three four five")))
    signed = scale("anthropic").weigh(message(Reasoning(text="one two three four five", signature="s" * 4000)))
    assert (plain.prose, signed.prose) == (5, 7)
    assert signed.bytes - plain.bytes == 4000


def test_encrypted_reasoning_counts_a_quarter_of_its_characters():
    """Reasoning that only the provider can read counts one token for four characters."""
    weight = scale().weigh(message(Reasoning(data="x" * 401)))
    assert weight.overhead == 5 + 101


def test_pictures_weigh_in_all_three_dimensions():
    """A picture has tokens by the rule, bytes on the wire, and counts as media, inside a result as well."""
    for block in (Image(data=PNG), ToolResult(tool_use_id="a", content=(Image(data=PNG),))):
        weight = scale().weigh(message(block))
        assert (weight.fixed, weight.media, weight.media_bytes) == (54, 1, len(png(200, 200)))
        assert weight.bytes > len(PNG)


def test_documents():
    """A text document weighs its words; a PDF weighs pages and counts as media."""
    text = scale().weigh(message(Document(text="hello world", title="Greeting")))
    pdf = scale().weigh(message(Document(data="AAAA", media_type="application/pdf")))
    assert (text.prose, text.fixed, text.media) == (3, 0, 0)
    assert (pdf.prose, pdf.fixed, pdf.media) == (0, 1600, 1)


def test_unknown_blocks_count_as_their_bytes():
    """A block of a kind nobody knows is counted as the JSON it came as."""
    raw = b'{"type":"later","text":"hello"}'
    assert scale().weigh(message(Unknown(type="later", raw=raw))).json == counter("o200k_base").count(raw.decode())


def test_bytes_are_those_that_came_unless_edited():
    """An unchanged message weighs its original bytes; an edited one what it would be sent as."""
    raw = b"x" * 5000
    assert scale().weigh(message(Text(text="hello"), raw=raw)).bytes == 5000
    assert 5 < scale().weigh(message(Text(text="hello"), raw=raw, edited=True)).bytes < 200


@given(st.text(max_size=300))
def test_bytes_are_never_fewer_than_the_json(text):
    """A message made here weighs at least the bytes of the JSON it becomes."""
    sent = {"role": "user", "content": [{"type": "text", "text": text}]}
    assert scale(vocabulary="chars/4").weigh(message(Text(text=text))).bytes >= len(msgspec.json.encode(sent))


@pytest.mark.parametrize("name", ["anthropic", "openai"])
@given(text=st.text(st.characters(exclude_categories=()), max_size=50))
def test_any_text_anywhere_can_be_weighed(name, text):
    """No text in any block makes weighing fail, half of a surrogate pair included."""
    blocks = (
        Text(text=text),
        Reasoning(text=text, signature=text, data=text),
        ToolUse(id=text, name=text, arguments=text),
        ToolResult(tool_use_id=text, content=(Text(text=text), Image(data=text), Image(url=text))),
        Document(text=text, title=text),
        Document(data=text, media_type="text/plain"),
    )
    assert scale(name).weigh(message(*blocks)).overhead > 0


@given(st.lists(st.text(max_size=50), max_size=5))
def test_weights_of_messages_add_up(texts):
    """The tokens of a request are those of its parts, but for the rounding."""
    scales = scale("openai", calibration=Calibration.starting(1.25))
    weights = [scales.weigh(text_message("user", text)) for text in texts]
    total = sum(weights, scales.frame)
    assert 0 <= sum(map(scales.tokens, weights)) + 3 - scales.tokens(total) <= len(texts)


def test_calibration_changes_tokens_and_not_weights():
    """What was weighed once means more tokens when the ratio has grown."""
    scales = scale("openai", calibration=Calibration.starting(1.0))
    weight = scales.weigh(text_message("user", "a b c d e f g h i j"))
    assert scales.tokens(weight) == 14
    scales.calibration = Calibration.starting(1.25)
    assert scales.tokens(weight) == 17


@pytest.mark.parametrize("text", ["", "hello world", '{"a": [1, 2], "b": "c"}', "f(x) = {x[0]; g(x)}", "日本語の文章"])
def test_a_text_counts_as_the_message_that_it_would_be(text):
    """Whatever kind it is of, and whatever was learned of each kind."""
    learned = Calibration.starting({"prose": 1.3, "code": 1.7, "json": 0.9, "cjk": 2.1})
    scales = scale("openai", calibration=learned)
    assert scales.count(text) == scales.tokens(scales.weigh(text_message("user", text)))


def test_bare_text_has_no_framing():
    """Text by itself weighs its words and nothing else."""
    assert scale("openai").weigh_text("hello world") == Weight(prose=2, bytes=13)


@pytest.mark.parametrize(("block", "size"), [(Image(data=PNG), 69), (Image(url="https://example.org/a.png"), 0)])
def test_media_size(block, size):
    """One inline picture has its decoded bytes; one by address has none."""
    assert media_size(block) == size
