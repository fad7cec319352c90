"""What is shown of an output that is too long: the parts of its structure that say most."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.outputs import Limits, outline

pytestmark = pytest.mark.unit

LIMITS = Limits(line=400, bytes=4_096)
ORDERS = {
    "status": "ok",
    "orders": [{"id": n, "price": n / 3, "name": f"order {n}"} for n in range(3_000)],
    "total": 3_000,
}
LOG = [f"2026-01-02 10:00:{n % 60:02} INFO request {n} done" for n in range(8_100)]


@pytest.mark.parametrize("indent", [None, 2])
def test_json_keeps_its_keys_and_first_rows(indent):
    """Every key stays, a list shows its first rows and how many more there are, and what is shown is still JSON."""
    body, _, note = outline(json.dumps(ORDERS, indent=indent), LIMITS, ref="o3").text.rpartition("\n")
    shown = json.loads(body)
    assert (shown["status"], shown["total"], shown["orders"][:3]) == ("ok", 3_000, ORDERS["orders"][:3])
    rows = len(shown["orders"]) - 1
    assert shown["orders"][-1] == f"... {3_000 - rows:,} more of 3,000"
    assert 'tool_output_cache(ref_id="o3", offset=1) reads on' in note


def test_json_on_one_line_is_within_the_limits_by_its_bytes():
    """The length of its only line says nothing."""
    assert outline(json.dumps(ORDERS["orders"][:50]), LIMITS) is None


def test_numbers_keep_their_spelling():
    """A value is shown as the tool wrote it."""
    text = '{"big": 123456789012345678901234567890, "price": 1.50, "rows": [' + ", ".join(["1e5"] * 5_000) + "]}"
    shown = outline(text, LIMITS).text
    assert all(each in shown for each in ("123456789012345678901234567890", "1.50", "1e5"))


def test_a_log_shows_its_ends_and_its_errors():
    """The first and the last lines, how many were omitted, and one line of each kind of error with its number."""
    lines = [*LOG]
    lines[4_000] = "2026-01-02 10:00:00 ERROR disk 1 is full"
    lines[5_000] = "2026-01-02 10:00:00 ERROR disk 2 is full"
    lines[6_000] = "ValueError: no such user"
    shown = outline("\n".join(lines), Limits(), ref="o3").text.splitlines()
    assert (shown[:50], shown[-50:]) == (lines[:50], lines[-50:])
    assert shown[50].startswith("[reduced: 8,000 lines omitted, 3 of which look like errors; tool_output_cache(ref_id=")
    assert shown[51:-50] == [f"4,001: {lines[4_000]}", f"6,001: {lines[6_000]}"]


def test_a_table_shows_its_header_and_its_ends():
    """A column that speaks of errors in every row makes no row stand out."""
    rows = ["id,error,amount", *(f"{n},error,{n * n}" for n in range(9_000))]
    shown = outline("\n".join(rows), Limits()).text.splitlines()
    assert (shown[:50], shown[50], shown[51:]) == (rows[:50], "[reduced: 8,901 lines omitted]", rows[-50:])


def test_a_plain_text_shows_both_ends():
    """As much as the limits allow, more of it from the beginning."""
    text = "\n".join(f"{chr(97 + n % 26) * (n % 7 + 3)} {n} is said in this chapter" for n in range(500))
    shown = outline(text, LIMITS).text
    head, _, tail = shown.partition("[reduced: ")
    assert text.startswith(head)
    assert text.endswith(tail.partition("]\n")[2])
    assert len(head) > len(tail) > 800
    assert 3_500 < len(shown) <= 4_096


def test_with_fill_a_log_takes_all_the_room():
    """Where nothing can be read on, as many lines as the limits allow are shown."""
    text = "\n".join(LOG)
    assert len(outline(text, Limits(bytes=100_000), fill=True).text) > 90_000
    assert len(outline(text, Limits(bytes=100_000)).text) < 10_000


def test_with_fill_a_line_above_the_limits_shows_both_ends():
    """Where nothing can be read on, the end of a giant line is not lost behind its beginning."""
    line = "".join(f"{n:06}" for n in range(100_000))
    shown = outline(line, Limits(line=40_000, bytes=10_000), fill=True).text
    assert shown.startswith(line[:4_000])
    assert shown.endswith(line[-4_000:])
    assert len(shown) <= 10_000


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30),
    max_leaves=200,
)


@given(_JSON.map(json.dumps) | st.text(max_size=6_000) | st.lists(st.text(max_size=60), max_size=300).map("\n".join))
def test_what_is_shown_is_within_the_limits_and_shorter(text):
    """Whatever a tool gives; the same text gives the same view."""
    limits = Limits(line=200, bytes=1_024)
    view = outline(text, limits, ref="o3")
    if view is None:
        assert len(text.encode(errors="surrogatepass")) <= limits.bytes
    else:
        size = len(view.text.encode(errors="surrogatepass"))
        assert size <= limits.bytes
        assert size < len(text.encode(errors="surrogatepass"))
        assert view == outline(text, limits, ref="o3")
