import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.tokens import KINDS, kind_of

pytestmark = pytest.mark.unit

CODE = "def add(a, b):\n\treturn a + b\n\nfor i in range(10):\n\tprint(add(i, i * 2))\n"
PROSE = "The user asked for a shorter summary (two sentences), so the second part was left out. It reads well now. "


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "prose"),
        (PROSE, "prose"),
        (PROSE * 100, "prose"),
        ("Größe und Übung sind schöne Wörter für Prüfungen.", "prose"),
        ("**Flight 12** is *late*. Here is what I can do:\n- rebook you\n- refund you\n", "prose"),
        (CODE, "code"),
        (CODE * 100, "code"),
        ("     1\timport os\n     2\tx = os.environ['HOME']\n", "code"),
        (json.dumps({"name": "window", "sizes": [1, 2, 3], "open": True}), "json"),
        (json.dumps([{"id": i, "name": f"item {i}"} for i in range(500)]), "json"),
        ("窓の大きさは二十万トークンです。", "cjk"),
        ("窗口已满,请压缩上下文。" * 300, "cjk"),
        ("창이 가득 찼습니다.", "cjk"),
        ("(see the note in brackets)", "prose"),
    ],
)
def test_kinds(text, kind):
    """A text is told apart by its signs and letters."""
    assert kind_of(text) == kind


@given(st.text(st.characters(exclude_categories=()), max_size=3000))
def test_every_text_has_a_kind(text):
    """No text is without a kind."""
    assert kind_of(text) in KINDS
