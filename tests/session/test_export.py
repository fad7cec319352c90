from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.cli_calls import anthropic_turns
from support.examples import examples
from windowsill import Session
from windowsill.errors import DamagedError, FormatError, InputError, NotFoundError
from windowsill.outputs import Outputs, chunks
from windowsill.outputs.parts import copies
from windowsill.session.export import export_session, import_session, is_export, kept_refs
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


@pytest.fixture
def store():
    """A store with a session that was folded, unfolded and rewound."""
    place = MemoryStore()
    with Session.open("s", model="claude-opus-4-6", budget=2_000, store=place) as session:
        for message in anthropic_turns(20):
            if message["role"] == "assistant":
                session.compose_sync(system="You read files.", tools=[{"name": "read", "input_schema": {}}])
            session.add(message)
        session.unfold(session.folds[0].id)
        session.rewind(next(session.messages()).id)
        session.add("again")
    return place


def entries(store, id):
    return store.read(id, 1, store.info(id).version)


def test_import_of_an_export_is_the_same_session(store):
    """Entries, settings, times and the calls' parts arrive unchanged, and the hashes hold."""
    target = MemoryStore()
    assert import_session(target, export_session(store, "s")) == "s"
    assert entries(target, "s") == entries(store, "s")
    assert target.info("s") == store.info("s")
    with Session.open("s", store=target) as copy, Session.open("s", store=store) as session:
        assert copy.verify() == []
        assert copy.branches == session.branches
        copy.switch(copy.branches[-1].id)
        session.switch(session.branches[-1].id)
        assert [copy.request(call.id) for call in copy.calls] == [session.request(call.id) for call in session.calls]


def test_export_of_an_import_is_the_same_export(store):
    """The lines go round and come back equal."""
    lines = list(export_session(store, "s"))
    target = MemoryStore()
    import_session(target, lines)
    assert list(export_session(target, "s")) == lines


def test_another_id_can_be_given(store):
    """The copy may stand beside the original."""
    assert import_session(store, export_session(store, "s"), "copy") == "copy"
    assert entries(store, "copy") == entries(store, "s")


def test_existing_session_is_refused_and_untouched(store):
    """An id that is taken is never written over."""
    before = entries(store, "s")
    with pytest.raises(InputError, match="'s' already"):
        import_session(store, list(export_session(store, "s")))
    assert entries(store, "s") == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(0.6))
@given(data=st.data())
def test_changed_entry_is_named_and_nothing_is_imported(store, data):
    """A change to any field of any entry or blob is found, and its line is named."""
    lines = list(export_session(store, "s"))
    number = data.draw(st.integers(1, len(lines) - 1))
    fields = json.loads(lines[number])
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = {"kind": "usage", "parent": -1}.get(name, "AAAA") if isinstance(fields[name], str) else -1
    changed = json.dumps(fields).encode()
    target = MemoryStore()
    if json.loads(lines[number]) == fields:
        return
    with pytest.raises(DamagedError, match=f"^line {number + 1}: "):
        import_session(target, [*lines[:number], changed, *lines[number + 1 :]])
    assert target.sessions() == []


def test_changed_blob_is_named_and_nothing_is_imported(store):
    """A system prompt that was changed on the way is found."""
    lines = list(export_session(store, "s"))
    number = next(place for place, line in enumerate(lines) if line.startswith(b'{"blob"'))
    lines[number] = lines[number].replace(b'"data":"', b'"data":"AAAA')
    target = MemoryStore()
    with pytest.raises(DamagedError, match=f"line {number + 1}: blob .* is not what was written"):
        import_session(target, lines)
    assert target.sessions() == []


@pytest.mark.parametrize("cut", [-1, 10, 1])
def test_export_that_ends_early_is_refused(store, cut):
    """Lines missing at the end are noticed."""
    target = MemoryStore()
    with pytest.raises(DamagedError, match="it ends after"):
        import_session(target, list(export_session(store, "s"))[:cut])
    assert target.sessions() == []


def test_missing_line_in_the_middle_is_refused(store):
    """A gap is named by the line after it."""
    lines = list(export_session(store, "s"))
    with pytest.raises(DamagedError, match=r"line \d+: entry \d+ where \d+ should stand"):
        import_session(MemoryStore(), lines[:5] + lines[6:])


def test_export_of_a_newer_version_is_refused(store):
    """Lines that this version cannot know are not guessed at."""
    head, *rest = export_session(store, "s")
    with pytest.raises(FormatError, match="upgrade windowsill"):
        import_session(MemoryStore(), [head.replace(b'"version":1', b'"version":3'), *rest])


def test_missing_session_cannot_be_exported():
    """There is nothing to export where there is no session."""
    with pytest.raises(NotFoundError, match="no session 'x'"):
        export_session(MemoryStore(), "x")


def test_write_that_fails_leaves_nothing(store, monkeypatch):
    """When the store refuses the entries, the session that was begun is gone again."""
    target = MemoryStore()

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(target, "append", refuse)
    with pytest.raises(OSError, match="No space"):
        import_session(target, export_session(store, "s"))
    assert target.sessions() == []


def test_export_is_told_from_a_conversation(store):
    """The first line says what it is."""
    assert is_export(next(iter(export_session(store, "s"))))
    assert not is_export(b'{"messages": []}')
    assert not is_export(b"not json")


LARGE = b"".join(b"line %d of a large output\n" % number for number in range(200_000))


@pytest.fixture
def keeping():
    """A store with a session that keeps an output of 5 MB, an empty one, and one that no message refers to."""
    place = MemoryStore()
    with Session.open("s", model="claude-opus-4-6", store=place) as session:
        session.outputs.keep(["nobody refers to this"])
        for number, content in enumerate((LARGE, b"", LARGE)):
            call = f"call{number}"
            session.add("read it")
            session.add({"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "r", "input": {}}]})
            result = {"type": "tool_result", "tool_use_id": call, "content": "its beginning"}
            kept = session.outputs.keep([content])
            session.add({"role": "user", "content": [result]}, outputs={call: kept})
    return place


def test_kept_outputs_come_along(keeping):
    """Once each, whole and checked, those that messages refer to; the export of the copy is the same."""
    target = MemoryStore()
    lines = list(export_session(keeping, "s"))
    import_session(target, lines)
    refs = kept_refs(target, "s", target.info("s").version)
    outputs = Outputs(target, "s")
    assert sorted(outputs.open(ref).size for ref in refs) == [0, len(LARGE)]
    assert sorted(b"".join(data for _, data in chunks(outputs.open(ref))) for ref in refs) == [b"", LARGE]
    assert len(copies(target, "s")) == 2
    assert list(export_session(target, "s")) == lines
    assert len(max(lines, key=len)) < len(LARGE)


def test_an_export_without_kept_outputs_is_what_it_was(store, keeping):
    """A Windowsill that knows nothing of kept outputs reads it; one that would lose some is told to upgrade."""
    Outputs(store, "s").keep(["nobody refers to this"])
    assert b'"version":1' in next(iter(export_session(store, "s")))
    assert b'"version":2' in next(iter(export_session(keeping, "s")))


def test_a_changed_output_is_named_and_nothing_is_imported(keeping):
    """Bytes that changed on the way, or a piece that was lost, do not arrive as the output."""
    lines = list(export_session(keeping, "s"))
    number = next(place for place, line in enumerate(lines) if line.startswith(b'{"output"'))
    changed = lines[number].replace(b'"data":"', b'"data":"AAAA')
    for bad in ([*lines[:number], changed, *lines[number + 1 :]], lines[:number] + lines[number + 1 :]):
        target = MemoryStore()
        with pytest.raises(DamagedError, match=r"line \d+: tool output 'b[0-9a-f]+' before it is not what was written"):
            import_session(target, bad)
        assert target.sessions() == []


def test_a_damaged_output_is_not_exported(keeping):
    """The export stops where the store no longer has what was written."""
    part = keeping.blob_ids("s", "output/part/")
    keeping.drop_blobs("s", part)
    with pytest.raises(DamagedError, match="is missing"):
        list(export_session(keeping, "s"))
