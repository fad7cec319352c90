"""The promises that may never break, at every step of random sessions."""

import itertools
import json
import shutil
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import windowsill
from support.examples import examples
from windowsill import BudgetError, FoldError, Session, providers
from windowsill.history.view import build, sum_weights
from windowsill.journal.reader import VIEW_KINDS

pytestmark = pytest.mark.integration

SYSTEM = "You mend programs."
TOOLS = [{"name": "run", "description": "Run it", "input_schema": {"type": "object", "properties": {}}}]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

words = st.text(alphabet="abc déf日本語\n", min_size=0, max_size=60)
lengths = st.sampled_from([1, 1, 1, 20, 200])


def text_block(text):
    return {"type": "text", "text": text}


def blocks_of(body):
    """The blocks of a request in order, without cache markers: what a provider's cache sees."""
    found = []
    for message in body["messages"]:
        content = message["content"]
        content = [text_block(content)] if isinstance(content, str) else content
        found += [
            (message["role"], json.dumps({key: value for key, value in block.items() if key != "cache_control"}))
            for block in content
        ]
    return found


class Conversation(RuleBasedStateMachine):
    """A session that is treated badly, and a plain list beside it that says what must still be there."""

    @initialize(
        budget=st.sampled_from([900, 1_500, 4_000]),
        keep=st.integers(0, 4),
        model=st.sampled_from(["claude-sonnet-4-5", "claude-sonnet-5"]),
    )
    def begin(self, budget, keep, model):
        """Open a session in a real database, with a model that binds its reasoning to the past or one that does not."""
        self.model = model
        self.folder = Path(tempfile.mkdtemp())
        self.budget = budget
        self.keep = keep
        self.numbers = itertools.count(1)
        self.ticks = itertools.count(1_000)
        self.open_calls = []
        self.added = []
        self.last = None
        self.opened()
        self.note(self.session.add({"role": "user", "content": "the task"}), {"role": "user", "content": "the task"})

    def opened(self):
        """Open it again, as a new process would."""
        self.session = Session.open(
            "s",
            model=self.model,
            budget=self.budget,
            strategy=f"sliding-window:keep={self.keep}",
            tokenizer="o200k_base",
            store=self.folder,
            clock=lambda: float(next(self.ticks)),
        )

    def teardown(self):
        """Close and tidy up."""
        if hasattr(self, "session"):
            self.session.close()
            shutil.rmtree(self.folder)

    def note(self, id, message):
        self.added.append((id, msgspec.json.encode(message)))

    def add(self, message):
        self.note(self.session.add(message), message)

    @rule(text=words, times=lengths)
    def user_speaks(self, text, times):
        """Also nothing at all, and far too much."""
        self.add({"role": "user", "content": text * times})

    @rule(text=words)
    def user_shows_a_picture(self, text):
        """Pictures weigh little in tokens."""
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        self.add({"role": "user", "content": [{"type": "image", "source": source}, text_block(text)]})

    @rule(text=words, calls=st.integers(0, 3), thinks=st.booleans(), strange=st.booleans())
    def assistant_answers(self, text, calls, thinks, strange):
        """With reasoning, parallel calls, and a block from the future."""
        content = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}] if thinks else []
        content += [text_block(text)] if text else []
        content += [{"type": "hologram", "payload": [1, 2]}] if strange else []
        ids = [f"t{next(self.numbers)}" for _ in range(calls)]
        content += [{"type": "tool_use", "id": id, "name": "run", "input": {"n": id}} for id in ids]
        self.add({"role": "assistant", "content": content})
        self.open_calls += ids

    @precondition(lambda self: self.open_calls)
    @rule(data=st.data(), text=words, times=lengths, error=st.booleans())
    def a_tool_answers(self, data, text, times, error):
        """Soon or late, in any order, some of them never."""
        ids = data.draw(st.lists(st.sampled_from(self.open_calls), min_size=1, unique=True))
        results = [
            {"type": "tool_result", "tool_use_id": id, "content": text * times, **({"is_error": True} if error else {})}
            for id in ids
        ]
        self.open_calls = [id for id in self.open_calls if id not in ids]
        self.add({"role": "user", "content": results})

    @rule(text=words)
    def a_result_without_call(self, text):
        """As damaged transcripts have."""
        self.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "ghost", "content": text}]})

    @rule(data=st.data())
    def pin(self, data):
        """A message that must stay."""
        if len(self.added) < 8:
            self.session.pin(data.draw(st.sampled_from(self.added))[0])

    @rule(data=st.data())
    def fold_by_hand(self, data):
        """Anywhere; what would break a unit is refused and changes nothing."""
        ids = [item.id for item in self.session.view.items if not item.fold]
        if len(ids) < 3:
            return
        first = data.draw(st.integers(0, len(ids) - 1))
        last = data.draw(st.integers(first, min(len(ids) - 1, first + 6)))
        before = self.shown()
        try:
            fold = self.session.fold(ids[first], ids[last], text="short")
        except FoldError:
            assert self.shown() == before
            return
        self.last = None
        if data.draw(st.booleans()):
            self.session.unfold(fold)
            assert self.shown() == before

    @rule(data=st.data())
    def mask_by_hand(self, data):
        """A tool output behind a placeholder, and back."""
        candidates = [item.id for item in self.session.view.items if item.results and not item.fold]
        if not candidates:
            return
        before = self.shown()
        try:
            fold = self.session.mask(data.draw(st.sampled_from(candidates)))
        except FoldError:
            assert self.shown() == before
            return
        self.last = None
        if data.draw(st.booleans()):
            self.session.unfold(fold)
            assert self.shown() == before

    @rule(data=st.data(), fit=st.booleans())
    def unfold_something(self, data, fit):
        """Any fold that still applies, whole, in part, or as much as fits."""
        active = [fold for fold in self.session.folds if fold.active]
        if not active:
            return
        fold = data.draw(st.sampled_from(active))
        spans = [span.number for span in fold.spans if span.active]
        try:
            if fit:
                self.session.unfold(fold.id, fit=True)
            else:
                self.session.unfold(fold.id, span=data.draw(st.sampled_from([None, *spans])))
        except FoldError:
            return
        self.last = None

    @rule(data=st.data(), before=st.booleans())
    def rewind(self, data, before):
        """To any message; later folds vanish with what they hid."""
        place = data.draw(st.integers(0, len(self.added) - 1))
        if before and place == 0:
            return
        head = self.session.branches[0].id
        left = list(self.added)
        self.session.rewind(self.added[place][0], before=before)
        self.added = self.added[: place if before else place + 1]
        self.last = None
        if data.draw(st.booleans()):
            self.session.switch(head)
            self.added = left
        else:
            kept = {id for id, _ in self.added}
            self.open_calls = [id for id in self.open_calls if self.called_by(id, kept)]

    def called_by(self, call, kept):
        return any(call in item.calls for item in self.session.view.items if item.id in kept)

    @rule()
    def reopen(self):
        """Nothing depends on what is in memory."""
        before = self.shown()
        weight = self.session.view.weight
        self.session.close()
        self.opened()
        assert self.shown() == before
        assert self.session.view.weight == weight

    @rule()
    def compose(self):
        """Fits, is valid, is the same twice, and only grew at its end."""
        try:
            payload = self.session.compose_sync(system=SYSTEM, tools=TOOLS)
        except BudgetError as error:
            self.is_too_large(error)
            return
        assert payload.tokens <= self.budget
        assert self.counted_again(payload) <= self.budget
        for format in ("anthropic", "openai"):
            body = payload.to(format)
            assert windowsill.validate({"max_tokens": 5, **body}, format) == []
        body = payload.to("anthropic")
        again = self.session.compose_sync(system=SYSTEM, tools=TOOLS)
        assert again.body(cache=False) == payload.body(cache=False)
        assert not again.report.folds
        blocks = blocks_of(body)
        if self.last is not None and not payload.report.folds:
            assert blocks[: len(self.last)] == self.last
        self.last = blocks
        self.calls_are_kept(payload)

    def is_too_large(self, error):
        """The error names the parts, and they really do not fit."""
        assert error.wanted > error.available
        assert error.parts

    def counted_again(self, payload):
        """The tokens of the request, counted from its own bytes."""
        request = providers.read_request(payload.body("anthropic", cache=False), format="anthropic")
        scale = self.session.composer.context.scale
        weights = [scale.weigh(message) for message in (*request.messages, request.system)]
        return scale.tokens(sum_weights([*weights, scale.weigh_tools(request.tools), scale.frame]))

    def calls_are_kept(self, payload):
        """The request can be built again later, byte for byte."""
        self.session.add({"role": "assistant", "content": "noted"})
        self.added.append(
            (self.session.view.items[-1].id, msgspec.json.encode({"role": "assistant", "content": "noted"}))
        )
        call = self.session.calls[-1]
        rebuilt = json.loads(self.session.request(call.id))
        assert blocks_of(rebuilt) == blocks_of(payload.to("anthropic"))

    def shown(self):
        view = self.session.view
        return [(item.id, item.marks, msgspec.json.encode(view.read(item))) for item in view.items]

    @invariant()
    def nothing_is_lost(self):
        """Every message of the branch is there, byte for byte, in order."""
        if hasattr(self, "session"):
            assert [(message.id, message.raw) for message in self.session.messages()] == self.added

    @invariant()
    def the_view_is_what_its_entries_define(self):
        """Keeping it up to date gives the same as building it anew."""
        if not hasattr(self, "session"):
            return
        journal = self.session.journal
        fresh = build(journal.branch(*VIEW_KINDS), journal.scale, journal.show)
        assert [msgspec.to_builtins(item) for item in self.session.view.items] == [
            msgspec.to_builtins(item) for item in fresh.items
        ]
        assert fresh.weight == self.session.view.weight
        assert fresh.edits_of_past == self.session.view.edits_of_past

    @invariant()
    def the_journal_is_whole(self):
        """Every entry is as it was sealed."""
        if hasattr(self, "session"):
            assert self.session.verify() == []


Conversation.TestCase.settings = settings(
    max_examples=2_000 if settings.get_current_profile_name() == "soak" else examples(0.4),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestConversation = Conversation.TestCase
