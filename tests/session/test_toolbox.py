"""The tools for the model: each reads what left the window, and a mistake is answered with a way out."""

import pytest

from support.conversations import PNG, result, text_block, use
from support.sessions import problems
from windowsill import Session, providers
from windowsill.messages import ToolUse
from windowsill.session.handoff import handoff
from windowsill.session.toolbox import TOOLS
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

LISTING = "\n".join(f"{number:04}: value_{number}" for number in range(1, 1_001))


def opened(window: int = 8_000, store=None, **settings) -> Session:
    session = Session.open(
        "s", model="claude-sonnet-4-5", window=window, store=store or MemoryStore(), clock=lambda: 86_400.0, **settings
    )
    session.add({"role": "user", "content": "list the values"})
    session.add({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]})
    result = {"type": "tool_result", "tool_use_id": "c1", "content": LISTING}
    session.add({"role": "user", "content": [result]})
    return session


def ref(session: Session) -> str:
    return f"o{session.view.items[2].seq}"


def test_every_provider_gets_a_definition_it_takes():
    """The definitions are read back from each format with the same names, words and parameters."""
    tools = opened().tools
    for name in providers.names():
        read = providers.read_tools(tools.definitions(name))
        assert [tool.name for tool in read] == list(TOOLS)
        assert [tool.description for tool in read] == [tool.description for tool in tools.tools]
        assert read[1].schema["required"] == ["ref_id", "pattern"]


def shooting(**settings) -> Session:
    """A session in which a tool gave words, a picture, and words again, and the output was trimmed."""
    session = Session.open("p", store=MemoryStore(), **{"model": "claude-sonnet-4-5", **settings})
    session.add({"role": "user", "content": "Look at the page."})
    session.add({"role": "assistant", "content": [use("c1", "shoot")]})
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    blocks = [text_block("two\nlines " + "word " * 300), image, text_block("the end")]
    session.add({"role": "user", "content": [result("c1", blocks)]})
    session.add({"role": "assistant", "content": "I see it."})
    session.mask("m3")
    session.add({"role": "user", "content": "Look again."})
    return session


@pytest.mark.parametrize("format", [name for name in providers.names() if name != "deepseek"])
def test_an_image_is_shown_again(format):
    """O5: the answer holds the picture itself, in a request that is valid for the provider."""
    session = shooting()
    session.add({"role": "assistant", "content": [{**use("r1", "tool_output_cache"), "input": {"ref_id": "o3"}}]})
    assert PNG.encode() not in session.compose_sync().body(format)
    session.add(session.tools.answer())
    payload = session.compose_sync(tools=session.tools.tools)
    assert PNG.encode() in payload.body(format)
    assert problems(payload, format) == []


def test_an_image_is_shown_only_with_the_lines_it_stands_among():
    """Reading further on does not show it again; a message is read with its pictures too."""
    session = shooting()
    media = lambda **wanted: len(session.tools.call("tool_output_cache", {"ref_id": "o3", **wanted}).media)  # noqa: E731
    assert (media(), media(limit=2), media(offset=3, limit=1), media(offset=4)) == (1, 0, 1, 0)
    assert session.tools.call("history_read", {"message_id": "m3"}).media[0].data == PNG


def test_an_output_is_read_by_lines_with_their_numbers():
    """Lines come numbered, and the answer says how to go on."""
    session = opened()
    answer = session.tools.call("tool_output_cache", {"ref_id": ref(session), "offset": 500, "limit": 2})
    assert answer.text.splitlines() == [
        "   500\t0500: value_500",
        "   501\t0501: value_501",
        "[lines 500-501 of 1,000; offset=502 reads on]",
    ]


def test_an_output_is_searched():
    """Matching lines come with their numbers and context."""
    session = opened()
    text = session.tools.tool_output_cache_grep(ref(session), "value_77$", context=1)
    assert text.splitlines()[:3] == ["76-0076: value_76", "77:0077: value_77", "78-0078: value_78"]


def test_the_history_is_searched_and_read():
    """A search shows where a passage stands, and that message can be read whole."""
    session = opened()
    found = session.tools.history_search("value_777", 1)
    assert found.startswith("[m3] tool ls, 1970-01-02 00:00, lines ")
    assert "0777: value_777" in found
    assert "   780\t" in session.tools.history_read("m3", offset=779, limit=3)


def test_an_answer_is_small_in_a_small_window():
    """One answer takes at most an eighth of the window."""
    session = opened(window=8_000)
    assert len(session.tools.tool_output_cache(ref(session), limit=1_000)) <= 4_000


def test_the_status_tells_how_full_it_is_and_what_was_folded():
    """Tokens, limit and folds are told."""
    session = opened(window=4_000)
    session.compose_sync()
    told = session.tools.context_status()
    used, limit = session.composer.fill
    assert told.startswith(f"{used:,} of {limit:,} tokens are used")
    assert session.folds[0].id in told


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("tool_output_cache", {"ref_id": "o99"}, "there is no tool output 'o99'"),
        ("tool_output_cache", {"ref_id": "../../etc/passwd"}, "there is no tool output"),
        ("tool_output_cache", {"ref_id": "o3", "offset": 5_000}, "it has 1,000 lines"),
        ("tool_output_cache", {"ref_id": "o3", "offset": 0}, "Expected `int` >= 1"),
        ("tool_output_cache", {}, "missing required field `ref_id`"),
        ("tool_output_cache", "{not json", "cannot be called so"),
        ("tool_output_cache", {"ref_id": "o3", "file": "x"}, "it takes ref_id, offset, limit, column"),
        ("tool_output_cache_grep", {"ref_id": "o3", "pattern": "("}, "Error: "),
        ("history_search", {"query": "  "}, "the query is empty"),
        ("history_read", {"message_id": "m99"}, "history_search shows the ids"),
        ("history_read", {"message_id": "c1"}, "there is no message"),
        ("rm", {}, "there is no tool 'rm'"),
    ],
)
def test_a_mistake_is_answered_with_a_way_out(name, arguments, said):
    """Whatever a model gets wrong is an error answer that says what to do, never an exception."""
    answer = opened().tools.call(name, arguments)
    assert answer.is_error
    assert said in answer.text


def test_numbers_written_as_text_are_numbers():
    """Models pass numbers as text now and then."""
    session = opened()
    assert "   500\t" in session.tools.call("tool_output_cache", {"ref_id": "o3", "offset": "500"}).text


def test_calls_are_answered_as_a_message():
    """The results of a reply's calls of these tools are one message; calls of other tools are left alone."""
    session = opened()
    calls = [ToolUse(id="a", name="context_status"), ToolUse(id="b", name="bash"), ToolUse(id="c", name="history_read")]
    answer = session.tools.answer(calls)
    assert [(block.tool_use_id, block.is_error) for block in answer.results] == [("a", False), ("c", True)]
    assert session.tools.answer(calls[1:2]) is None


def test_another_session_cannot_be_read():
    """Neither a ref nor a message id nor a search reaches into another session of the store."""
    store = MemoryStore()
    opened(store=store)
    other = Session.open("other", model="claude-sonnet-4-5", store=store)
    other.add("hello")
    assert other.tools.call("tool_output_cache", {"ref_id": "o3"}).is_error
    assert other.tools.call("history_read", {"message_id": "m3"}).is_error
    assert "value_" not in other.tools.history_search("value_777")


def test_sessions_of_one_project_are_searched_together_when_that_is_the_scope():
    """With the scope `project`, what another session of the project holds is found; of a foreign one it is not."""
    store = MemoryStore()
    for name, project in (("mine", "p"), ("yours", "p"), ("foreign", "q")):
        Session.open(name, model="claude-sonnet-4-5", project=project, store=store).add(f"the {name} password")
    session = Session.open("mine", scope="project", store=store)
    found = {each.session for each in session.archive.retrieve("password", 10)}
    assert found == {"mine", "yours"}


def test_what_another_process_wrote_is_seen():
    """The tools see what was added to the session through another object since."""
    store = MemoryStore()
    session = opened(store=store)
    session.tools.context_status()
    Session.open("s", store=store).add("the launch code is 7421")
    assert "7421" in session.tools.history_search("launch code")


@pytest.mark.parametrize(
    "arguments", [[1], ["ref_id", "o3"], b'{"ref_id": "o3"}', "\ud800", '{"ref_id":' + "[" * 100_000, 7, True]
)
def test_arguments_that_are_no_object_are_answered(arguments):
    """Whatever a provider or a hostile model puts where the arguments belong, nothing is raised."""
    answer = opened().tools.call("tool_output_cache", arguments)
    assert answer.is_error
    assert answer.text.startswith("Error: tool_output_cache cannot be called so: ")


def test_arguments_of_blanks_are_none():
    """Some servers send a blank for a call without arguments."""
    assert not opened().tools.call("context_status", " \n").is_error


def test_a_refusal_is_not_longer_than_an_answer():
    """What the model passed is not given back whole: a megabyte of it would push out what is worked on."""
    session = opened()
    for name, arguments in (
        ("tool_output_cache", {"ref_id": "x" * 1_000_000}),
        ("x" * 1_000_000, {}),
        ("history_read", {"message_id": "記" * 1_000_000}),
    ):
        answer = session.tools.call(name, arguments)
        assert answer.is_error
        assert len(answer.text.encode()) <= 4_000


@pytest.mark.parametrize("at", [1.7e12, 1e20, -1e12])
def test_a_time_that_no_calendar_has_is_shown_as_it_is(at):
    """A caller who gave milliseconds can search, read and hand over the session all the same."""
    session = opened()
    session.add({"role": "user", "content": "the disk is full"}, at=at)
    assert "the disk is full" in session.tools.history_search("disk full")
    assert "the disk is full" in session.tools.history_read("m4")
    assert "the disk is full" in handoff(session)


@pytest.mark.parametrize("window", [1_000, 2_000, 2_047])
def test_the_smallest_windows_can_be_read_from(window):
    """An answer there is short, but it is one."""
    session = opened(window)
    for answer in (
        session.tools.call("tool_output_cache", {"ref_id": ref(session)}),
        session.tools.call("tool_output_cache_grep", {"ref_id": ref(session), "pattern": "value_7"}),
        session.tools.call("history_read", {"message_id": "m3"}),
    ):
        assert not answer.is_error
        assert len(answer.text.encode()) <= 1_200


def test_a_passage_that_is_larger_than_an_answer_is_cut():
    """What was found is never told to be nothing."""
    session = opened(1_000)
    session.add(
        {"role": "user", "content": "倉庫の在庫。" + "とても長い文章を書きます。" * 40 + "\n" + "倉庫の棚。" * 200}
    )
    answer = session.tools.history_search("倉庫", 1)
    assert answer.startswith("[m4] user")
    assert len(answer.encode()) <= 1_200


def test_a_ref_may_be_written_as_the_conversation_shows_it():
    """`ref=o3` with blanks or quotes around it is the ref `o3`."""
    session = opened()
    for written in ("ref=o3", " o3 ", '"o3"', "ref_id=o3"):
        assert session.tools.tool_output_cache(written, limit=1).startswith("     1\t0001: value_1")


def test_a_fold_inside_another_is_not_told_again():
    """The outer one hides what the inner one hid: counted twice, more would seem to be gone."""
    session = opened(strategy="condense")
    session.add("the task")
    for number in range(40):
        session.add({"role": "assistant", "content": f"step {number} " + "word " * 200})
        session.add(f"go on {number}")
        session.compose_sync()
    inner = [fold.id for fold in session.folds if fold.active and fold.inside]
    told = session.tools.context_status()
    assert inner
    assert [id for id in inner if f"- {id}:" in told] == []
