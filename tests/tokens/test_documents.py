"""Documents, sound and film: their text, pages and seconds, and what these cost with each provider."""

import base64
import io
import struct
import wave
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import Session
from windowsill.messages import Document
from windowsill.tokens import IMAGE_RULES, image_rule
from windowsill.tokens.media import count_pages, document_text, file_tokens, read_file

pytestmark = pytest.mark.unit


def encoded(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (Document(text="words"), "words"),
        (Document(media_type="text/plain", data=encoded(b"words")), "words"),
        (Document(media_type="application/pdf", data=encoded(b"%PDF-1.7")), None),
        (Document(media_type="text/plain", url="https://example.org/a.txt"), None),
        (Document(media_type="text/plain", data="a"), None),
    ],
)
def test_text_of_documents(document, text):
    """A document that is text is counted as its text, whether inline or encoded."""
    assert document_text(document) == text


def plain_pdf(pages):
    objects = [b"<< /Type /Pages /Count %d >>" % pages, *[b"<< /Type /Page /Parent 1 0 R >>"] * pages]
    return b"%PDF-1.4\n" + b"".join(b"%d 0 obj %s endobj\n" % each for each in enumerate(objects, 1)) + b"%%EOF"


def packed_pdf(pages):
    """Return a PDF whose objects are packed, as newer programs write them."""
    packed = zlib.compress(b"<</Type/Pages/Count 1>>" + b"<</Type/Page/Parent 1 0 R>>" * pages)
    return b"%PDF-1.7\n1 0 obj <</Type/ObjStm/N 9/Filter/FlateDecode>>\nstream\n" + packed + b"\nendstream endobj"


@pytest.mark.parametrize(
    ("pdf", "pages"),
    [
        (plain_pdf(1), 1),
        (plain_pdf(12), 12),
        (packed_pdf(7), 7),
        (b"%PDF-1.4\n1 0 obj <</Linearized 1/L 900/N 31/T 800>> endobj" + plain_pdf(2), 31),
        (b"%PDF-1.4 << /Count 5 >>", 5),
        (b"%PDF-1.4 nothing here", None),
        (b"", None),
    ],
    ids=["one", "twelve", "packed", "for the web", "page tree alone", "none", "empty"],
)
def test_pages_are_counted_in_the_file(pdf, pages):
    """In its objects, also packed ones, or where the file says how many there are."""
    assert count_pages(pdf) == pages


@pytest.mark.parametrize(
    ("rule", "tokens"),
    [("anthropic", 10 * (1600 + 3000)), ("openai-4o", 10 * (765 + 1500)), ("gemini", 2_580), ("gemini-3", 5_600)],
)
def test_a_page_costs_its_picture_and_its_text(rule, tokens):
    """By the rule of the provider, whatever the file weighs: scans of megabytes are pages too."""
    scans = plain_pdf(10) + bytes(4_000_000)
    assert file_tokens(Document(media_type="application/pdf", data=encoded(scans)), image_rule(rule)) == tokens


def test_a_short_file_has_no_long_text():
    """The text of a page is never more than its bytes allow."""
    assert file_tokens(Document(data=encoded(plain_pdf(1))), image_rule("anthropic")) < 1_700


def test_pages_are_guessed_where_the_file_does_not_say_them():
    """From its bytes, at most as many as a provider reads; ten for an address."""
    rule = image_rule("gemini")
    assert file_tokens(Document(data=encoded(bytes(400_000))), rule) == 10 * 258
    assert file_tokens(Document(url="https://example.org/a.pdf"), rule) == 10 * 258
    assert file_tokens(Document(data=encoded(bytes(30_000_000))), rule) == 600 * 258


def wav(seconds, rate=16_000):
    place = io.BytesIO()
    with wave.open(place, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(bytes(2 * rate * seconds))
    return place.getvalue()


def mp3(seconds, tag=b""):
    """Return frames of 64 thousand bits in a second, behind a tag."""
    head = b"ID3\4\0\0" + bytes((0, 0, len(tag) >> 7, len(tag) & 127)) + tag if tag else b""
    return head + b"\xff\xfb\x50\xc4" + bytes(8_000 * seconds - 4)


def mp4(seconds, *, wide=False):
    layout, second = (">BxxxQQIQ", 1_000) if wide else (">BxxxIIII", 600)
    numbers = struct.pack(layout, wide, 0, 0, second, seconds * second)
    return b"\0\0\0\x18ftypisom" + bytes(50_000) + b"moov\0\0\0\x6cmvhd" + numbers


@pytest.mark.parametrize(
    ("sound", "kind"),
    [(wav(20), "audio/wav"), (mp3(20), "audio/mpeg"), (mp3(20, b"x" * 300), "audio/mp3"), (mp4(20), "audio/mp4")],
    ids=["wav", "mp3", "mp3 with a tag", "m4a"],
)
@pytest.mark.parametrize(("rule", "each"), [("gemini", 32), ("gemini-3", 32), ("openai-4o", 10)])
def test_sound_costs_by_the_second(sound, kind, rule, each):
    """Twenty seconds by the header of the file."""
    found = file_tokens(Document(media_type=kind, data=encoded(sound)), image_rule(rule))
    assert found == pytest.approx(20 * each, rel=0.02)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("rule", "each"), [("gemini", 300), ("gemini-3", 102)])
def test_film_costs_by_the_second(wide, rule, each):
    """A frame and its sound for each, by the header, also where it stands at the end of the file."""
    found = file_tokens(Document(media_type="video/mp4", data=encoded(mp4(10, wide=wide))), image_rule(rule))
    assert found == 10 * each


@pytest.mark.parametrize(
    ("kind", "tokens"), [("audio/ogg", 3_200), ("audio/pcm", 267), ("video/webm", 2_000), ("video/mp4", 2_000)]
)
def test_what_has_no_readable_header_is_taken_by_its_bytes(kind, tokens):
    """400,000 bytes of sound or film."""
    assert file_tokens(Document(media_type=kind, data=encoded(bytes(400_000))), image_rule("gemini")) == tokens


def test_a_file_by_address_is_a_minute():
    """Nobody can know before the reply."""
    film = Document(media_type="video/mp4", url="https://example.org/a.mp4")
    assert file_tokens(film, image_rule("gemini")) == 60 * 300


@given(data=st.binary(max_size=400), kind=st.sampled_from(["audio/wav", "video/mp4", "application/pdf", ""]))
def test_any_bytes_have_a_size(data, kind):
    """A broken file is counted, never refused."""
    for head in (b"", b"RIFF\0\0\0\0WAVEfmt ", b"ID3", b"\0\0\0\0ftyp", b"%PDF /ObjStm stream\n"):
        document = Document(media_type=kind, data=encoded(head + data))
        assert all(file_tokens(document, rule) >= 0 for rule in IMAGE_RULES.values())


def test_sound_in_a_block_of_openai_is_sound():
    """A question of nineteen seconds is 190 tokens, not as many as its letters."""
    question = {"type": "input_audio", "input_audio": {"data": encoded(wav(19)), "format": "wav"}}
    session = Session.open("s", model="gpt-4o", store=":memory:")
    session.add({"role": "user", "content": [question]})
    assert session.compose_sync().tokens == pytest.approx(190 + 7, abs=2)


def test_film_in_a_data_address_is_film():
    """As routers take it."""
    film = f"data:video/mp4;base64,{encoded(mp4(3))}"
    session = Session.open("s", model="gemini-2.5-flash", format="openai", store=":memory:")
    session.add({"role": "user", "content": [{"type": "video_url", "video_url": {"url": film}}]})
    assert session.compose_sync().tokens == pytest.approx(900, abs=20)


@pytest.mark.parametrize("raw", [b"{}", b"nonsense", b'{"a": {"data": 5}}', b'{"a": {"url": "https://x"}}', b"[1]"])
def test_other_blocks_hold_no_file(raw):
    """They are counted as the JSON they are."""
    assert read_file(raw) is None
