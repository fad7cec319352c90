"""The outputs of a session: found by their refs, whole, and by no other session."""

import sqlite3
from pathlib import Path
from unittest import mock

import anyio
import msgspec
import pytest

from support.kept_outputs import NOW, Clock, outputs, say
from windowsill.errors import DamagedError, NotFoundError
from windowsill.messages import Document, Image, OutputRef, Text, Unknown
from windowsill.outputs import Output, chunks
from windowsill.outputs.write import OutputWriter
from windowsill.store import Store
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.contract

STORES = {"memory": lambda _: MemoryStore(), "sqlite": lambda folder: SQLiteStore(folder / "sessions.db")}
IMAGE = Image(media_type="image/png", data="AAAA" * 10 + "AA==")


@pytest.fixture(params=STORES)
def store(request, tmp_path: Path):
    store = STORES[request.param](tmp_path)
    store.create("s", at=1.0)
    yield store
    store.close()


def whole(output: Output) -> bytes:
    return b"".join(data for _, data in chunks(output))


def test_an_output_in_a_message_is_read_from_it(store: Store):
    """Its ref is its place; its text is what the message brought."""
    seq = say(store, (Text(text="one\ntwo"), Text(text="three")))
    output = outputs(store).open(f"o{seq}")
    assert (whole(output), output.lines, output.size) == (b"one\ntwo\nthree", 3, 13)
    assert outputs(store).read(f"o{seq}.1", 2, 1) == "     2\ttwo\n[lines 2-2 of 3; offset=3 reads on]"


def test_each_of_several_results_has_a_ref(store: Store):
    """The second result of a message is `.2`; the entry alone names none of them."""
    say(store, (Text(text="a"),), (Text(text="b"),))
    assert whole(outputs(store).open("o1.2")) == b"b"
    with pytest.raises(NotFoundError, match=r"name one: o1.1 to o1.2"):
        outputs(store).open("o1")


def test_images_and_documents_are_listed_and_whole(store: Store):
    """What is not text is one line of the text, and the block itself is there."""
    blocks = (
        Text(text="seen:"),
        IMAGE,
        Image(url="https://x/y.png"),
        Document(title="notes", text="plain\nwords"),
        Unknown(type="odd", raw=b'{"type":"odd"}'),
    )
    say(store, blocks)
    output = outputs(store).open("o1")
    assert whole(output).decode().split("\n") == [
        "seen:",
        "[image image/png, 31 bytes]",
        "[image https://x/y.png]",
        "[document notes]",
        "plain",
        "words",
        '{"type":"odd"}',
    ]
    assert output.blocks[1] == IMAGE


def test_a_result_that_was_kept_is_read_where_it_is_kept(store: Store):
    """The place of a result whose message only has a view of it leads to the whole."""
    ref = outputs(store).keep(["the whole of it\n"])
    say(store, (Text(text="the wh..."),), refs=(ref,))
    assert whole(outputs(store).open("o1")) == b"the whole of it\n"


def test_a_result_whose_kept_output_is_not_here_reads_as_its_message(store: Store):
    """A message from elsewhere may name an output that did not come with it."""
    say(store, (Text(text="the wh..."),), refs=(OutputRef("b" + "0" * 16, 9, 1),))
    assert whole(outputs(store).open("o1")) == b"the wh..."


@pytest.mark.parametrize(
    "ref", ["o2", "o1.2", "o99999", "b" + "0" * 16, "", "o1; x", "output/part/1", "\ud800", "o" + "9" * 40]
)
def test_an_unknown_ref_is_a_clear_error(store: Store, ref: str):
    """The error names the ref and what refs look like."""
    say(store, (Text(text="a"),))
    with pytest.raises(NotFoundError, match="give a ref as it was shown"):
        outputs(store).open(ref)


def test_a_message_without_results_has_no_output(store: Store):
    """The place of another message is an unknown ref."""
    say(store)
    with pytest.raises(NotFoundError):
        outputs(store).open("o1")


def test_no_session_reads_the_outputs_of_another(store: Store):
    """The same ref in another session is unknown there, unless it has the same output itself."""
    mine, yours = outputs(store, "s"), outputs(store, "t")
    ref = mine.keep(["secret\n"])
    say(store, (Text(text="secret"),), session="s")
    for known in (ref.id, "o1"):
        with pytest.raises(NotFoundError):
            yours.open(known)
    assert yours.keep(["secret\n"]) == ref
    store.delete("s")
    assert whole(yours.open(ref.id)) == b"secret\n"


def test_kept_bytes_come_back_as_they_were(store: Store):
    """Pieces of text and bytes, of any size, invalid UTF-8 and NUL included, are kept byte for byte."""
    pieces = ["é\n", b"\xff\0\r\n", b"x" * 1_200_000, "漢" * 300_000, "\nend"]
    expected = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    ref = outputs(store).keep(pieces)
    assert (ref.bytes, ref.lines) == (len(expected), 4)
    assert whole(outputs(store).open(ref.id)) == expected
    outputs(store).verify(ref.id)


def test_an_output_is_kept_whole_or_in_pieces(store: Store):
    """A text is one piece, and not as many as it has characters."""
    kept = outputs(store)
    with mock.patch.object(OutputWriter, "write", autospec=True, side_effect=OutputWriter.write) as write:
        refs = [kept.keep("a\nb\n"), kept.keep(b"a\nb\n")]
    assert [each.args[1] for each in write.call_args_list] == ["a\nb\n", b"a\nb\n"]
    assert refs == [kept.keep(["a\n", b"b\n"])] * 2


def test_the_same_content_is_stored_once(store: Store):
    """However it was split, its ref is the same, and so is the number of blobs."""
    kept = outputs(store)
    first = kept.keep(["a\n" * 600_000])
    blobs = len(store.blob_ids("s", ""))
    assert kept.keep(["a\n"] * 600_000) == first
    assert len(store.blob_ids("s", "")) == blobs


def test_an_output_that_was_open_stays_readable_when_it_is_kept_again(store: Store):
    """The older copy goes; who had it open reads the newer one."""
    kept = outputs(store)
    output = kept.open(kept.keep(["a\n"]).id)
    kept.keep(["a\n"])
    assert whole(output) == b"a\n"


def test_an_empty_output_is_an_output(store: Store):
    """It has a ref, no lines, and says so when it is read."""
    kept = outputs(store)
    ref = kept.keep([])
    assert (ref.bytes, ref.lines) == (0, 0)
    assert kept.read(ref.id) == "[the output is empty]"
    assert kept.grep(ref.id, "x") == "[no line matches, of 0 lines]"
    assert kept.preview(ref.id) == ""


def test_an_asynchronous_stream_is_kept(store: Store):
    """It gives the ref that the same pieces give otherwise."""

    async def stream():
        for _ in range(5):
            yield "line\n" * 100_000

    kept = outputs(store)
    ref = anyio.run(kept.akeep, stream())
    assert ref == kept.keep(["line\n" * 500_000])


def test_a_stream_that_breaks_leaves_nothing(store: Store):
    """The error passes through, and no blob stays."""

    def broken():
        yield "line\n" * 1_000_000
        raise OSError("the pipe broke")

    async def broken_stream():
        yield "line\n" * 1_000_000
        raise OSError("the pipe broke")

    kept = outputs(store)
    with pytest.raises(OSError, match="the pipe broke"):
        kept.keep(broken())
    with pytest.raises(OSError, match="the pipe broke"):
        anyio.run(kept.akeep, broken_stream())
    assert store.blob_ids("s", "") == []


def test_two_contents_whose_hashes_begin_alike_have_two_refs(store: Store):
    """A ref that another content has is not given again: the new one is longer."""
    kept = outputs(store)
    ref = kept.keep(["mine\n"])
    blob = store.blob_ids("s", "output/index/")[0]
    # Another content under the name that "mine" would get.
    other = outputs(MemoryStore())
    other.keep(["other\n"])
    index = other._store.blob("s", other._store.blob_ids("s", "output/index/")[0])
    store.drop_blobs("s", store.blob_ids("s", ""))
    store.put_blobs("s", [(blob, index)])
    longer = kept.keep(["mine\n"])
    assert longer.id.startswith(ref.id)
    assert len(longer.id) == 33
    assert kept.read(longer.id) == "     1\tmine"


def test_a_damaged_part_names_its_lines_and_leaves_the_rest(tmp_path: Path):
    """Lines of other parts can still be read; the error tells which cannot."""
    store = SQLiteStore(tmp_path / "sessions.db")
    kept = outputs(store)
    ref = kept.keep([f"{number:07d}\n" for number in range(1, 800_001)])
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("UPDATE blob SET data = zeroblob(length(data)) WHERE id LIKE '%/0000001'")
        db.execute("DELETE FROM blob WHERE id LIKE '%/0000003'")
    assert kept.read(ref.id, 262_144, 1).startswith("262144\t0262144")
    assert kept.read(ref.id, 600_000, 1).startswith("600000\t0600000")
    with pytest.raises(DamagedError, match=rf"{ref.id}.*lines 262,145-524,288 is not what was written"):
        kept.read(ref.id, 262_145)
    with pytest.raises(DamagedError, match=r"lines 786,433-800,000 is missing"):
        kept.read(ref.id, 800_000)
    with pytest.raises(DamagedError):
        kept.grep(ref.id, "nothing such")
    assert kept.keep([f"{number:07d}\n" for number in range(1, 800_001)]) == ref
    kept.verify(ref.id)
    store.close()


def test_a_part_is_checked_once_and_by_verify_always(store: Store):
    """Damage after the first reading is found by `verify`, and by whoever opens the session anew."""
    kept = outputs(store)
    ref = kept.keep(["abc\n"])
    assert kept.grep(ref.id, "abc") == "1:abc\n[1 matching line]"
    blob = store.blob_ids("s", "output/part/")[0]
    store.drop_blobs("s", [blob])
    store.put_blobs("s", [(blob, b"abd\n")])
    assert kept.grep(ref.id, "abc") == "[no line matches, of 1 line]"
    with pytest.raises(DamagedError, match="lines 1-1 is not what was written"):
        kept.verify(ref.id)
    with pytest.raises(DamagedError):
        outputs(store).grep(ref.id, "abc")


def test_a_damaged_index_and_a_damaged_message_name_the_ref():
    """Nothing of such an output can be read, and keeping it again mends it."""
    store = MemoryStore()
    kept = outputs(store)
    ref = kept.keep(["a\n"])
    blob = store.blob_ids("s", "output/index/")[0]
    store._journals["s"].blobs[blob] += b"x"
    with pytest.raises(DamagedError, match=ref.id):
        kept.open(ref.id)
    assert kept.keep(["a\n"]) == ref
    assert kept.read(ref.id) == "     1\ta"
    say(store, (Text(text="a"),))
    entries = store._journals["s"].entries
    entries[0] = msgspec.structs.replace(entries[0], body=entries[0].body.replace(b'"a"', b'"b"'))
    with pytest.raises(DamagedError, match="'o1'"):
        kept.open("o1")


@pytest.mark.parametrize("id", ["index/{ref}/part/4deb/0000000", "part/4deb/alive-x"])
def test_a_damaged_id_is_told_and_costs_no_output(id):
    """A database that lists an id which was never written is damaged; nothing is collected on its word."""
    store = MemoryStore()
    kept = outputs(store)
    ref = kept.keep(["a\n"])
    store.put_blobs("s", [("output/" + id.format(ref=ref.id), b"x")])
    with pytest.raises(DamagedError, match="is no id of theirs"):
        kept.collect()
    assert len(store.blob_ids("s", "output/")) == 3


def test_time_is_told_by_the_clock_that_was_passed_in():
    """The same content at the same time gives the same blobs."""
    first, second = MemoryStore(), MemoryStore()
    for store in (first, second):
        outputs(store, clock=Clock()).keep(["a\n"])
    assert first._journals["s"].blobs == second._journals["s"].blobs
    assert f"{int(NOW * 1000):015d}" in first.blob_ids("s", "output/index/")[0]
