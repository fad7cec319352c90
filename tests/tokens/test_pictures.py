import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.pictures import png
from windowsill.tokens.media import decoded_size, picture_size

pytestmark = pytest.mark.unit


def jpeg(width, height, *, before=0):
    profile = b"\xff\xe1" + struct.pack(">H", 60_002) + bytes(60_000)
    frame = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03" + bytes(9)
    return b"\xff\xd8" + b"\xff\xe0\x00\x10JFIF\0" + bytes(9) + profile * before + b"\xff" + frame


def webp(form, rest):
    return b"RIFF\0\0\0\0WEBP" + form + b"\0\0\0\0" + rest + bytes(40)


SMALL_WEBP = b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
LOSSLESS = b"\x2f" + struct.pack("<I", (640 - 1) | (480 - 1) << 14)
EXTENDED = bytes(4) + (640 - 1).to_bytes(3, "little") + (480 - 1).to_bytes(3, "little")


@pytest.mark.parametrize(
    "picture",
    [
        png(640, 480),
        jpeg(640, 480),
        jpeg(640, 480, before=4),
        b"GIF89a" + struct.pack("<HH", 640, 480) + bytes(20),
        webp(b"VP8 ", SMALL_WEBP),
        webp(b"VP8L", LOSSLESS),
        webp(b"VP8X", EXTENDED),
    ],
    ids=["png", "jpeg", "jpeg behind profiles", "gif", "webp", "webp lossless", "webp extended"],
)
def test_size_is_read_from_the_header(picture):
    """Width and height come from the first bytes of each format."""
    assert picture_size(base64.b64encode(picture).decode()) == (640, 480)


@pytest.mark.parametrize("data", ["", "====", "not base64 at all!", "aGVsbG8=", base64.b64encode(png(0, 9)).decode()])
def test_other_data_has_no_size(data):
    """What is no picture, or claims to be empty, has no size."""
    assert picture_size(data) is None


@given(st.sampled_from([b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP", b"GIF89a"]), st.binary(max_size=300))
def test_damaged_pictures_never_fail(head, rest):
    """A damaged picture has a positive size or none."""
    size = picture_size(base64.b64encode(head + rest).decode())
    assert size is None or min(size) > 0


@given(st.text(max_size=200))
def test_any_text_is_accepted(text):
    """Text that is not base64 gives an answer too."""
    assert picture_size(text) is None or min(picture_size(text)) > 0


@given(st.binary(max_size=100))
def test_decoded_size(data):
    """The decoded size is known without decoding."""
    assert decoded_size(base64.b64encode(data).decode()) == len(data)
