import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.pictures import png
from windowsill.errors import InputError
from windowsill.messages import Image
from windowsill.tokens import IMAGE_RULES, image_rule
from windowsill.tokens.media import image_tokens

pytestmark = pytest.mark.unit

sides = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("rule", "width", "height", "detail", "tokens"),
    [
        ("anthropic", 200, 200, None, 54),
        ("anthropic", 1000, 1000, None, 1334),
        ("anthropic", 4000, 4000, None, 1600),
        ("anthropic-high", 1000, 1000, None, 1334),
        ("anthropic-high", 8000, 8000, None, 4784),
        ("openai-4o", 1024, 1024, "high", 765),
        ("openai-4o", 2048, 4096, "high", 1105),
        ("openai-4o", 4096, 8192, "low", 85),
        ("openai-4o-mini", 1024, 1024, None, 25_501),
        ("openai-5", 1024, 1024, None, 630),
        ("openai-o", 1024, 1024, None, 675),
        ("openai-mini", 1024, 1024, None, 1659),
        ("openai-nano", 1800, 2400, None, 3779),
        ("openai-patches", 1024, 1024, None, 1024),
        ("openai-patches", 4096, 4096, "original", 10_000),
        ("gemini", 384, 384, None, 258),
        ("gemini", 960, 540, None, 1548),
        ("gemini-3", 4000, 3000, None, 1120),
    ],
)
def test_published_examples(rule, width, height, detail, tokens):
    """Each provider's rule gives the number its documentation gives."""
    assert image_rule(rule).tokens(width, height, detail) == tokens


@pytest.mark.parametrize("name", sorted(IMAGE_RULES))
@given(width=sides, height=sides, detail=st.sampled_from([None, "low", "high", "auto", "original"]))
def test_no_picture_costs_more_than_the_largest(name, width, height, detail):
    """A picture of unknown size is never counted as less than a real one."""
    rule = image_rule(name)
    assert 0 < rule.tokens(width, height, detail) <= rule.largest(detail)


def test_size_comes_from_the_picture_itself():
    """An inline picture is counted by the size in its header."""
    data = base64.b64encode(png(200, 200)).decode()
    assert image_tokens(Image(data=data), image_rule("anthropic")) == 54
    assert image_tokens(Image(url=f"data:image/png;base64,{data}"), image_rule("anthropic")) == 54


@pytest.mark.parametrize("image", [Image(url="https://example.org/a.png"), Image(data="AAAA"), Image()])
def test_unknown_size_counts_as_the_largest(image):
    """A picture by address, or one that cannot be read, counts as the most expensive one."""
    assert image_tokens(image, image_rule("anthropic")) == 1600


def test_unknown_rule_lists_the_known_ones():
    """An unknown rule is refused with the names that would do."""
    with pytest.raises(InputError, match=r"no image rule 'x'.*anthropic"):
        image_rule("x")
