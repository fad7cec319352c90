"""What the engine says to the model when an answer was none."""

from __future__ import annotations

BROKEN = "[engine] Your last answer broke off before its end. Go on from there, or say it again."
CUT = "[engine] Your last answer reached the limit of its length. Go on exactly where it ends."
EMPTY = "[engine] Your last answer was empty. Go on with the task, or give the result."

DECLINED = "[engine] Your last answer was declined. Go on with the task, in another way if need be."

LENGTH = frozenset({"max_tokens", "length", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded"})
"""Why an answer ended that was cut off at its length, in the words of the providers."""

PAUSED = frozenset({"pause_turn"})
"""The provider wants to be asked again, as things are."""

REFUSED = frozenset(
    {
        "refusal",
        "content_filter",
        "SAFETY",
        "PROHIBITED_CONTENT",
        "BLOCKLIST",
        "SPII",
        "RECITATION",
        "IMAGE_SAFETY",
    }
)
"""Why an answer ended that the model or its provider would not give."""

STOP_REASON = "stop_reason"
"""Under which a message's metadata says why it ended."""

MOST_NUDGES = 3
"""Answers in a row that are none, before the run ends."""

REPEATED = (
    "[engine] This is the {times}. time in a row that you do this, with the same result. Do something else, or finish "
    "and say what keeps you from going on."
)

INTERRUPTED = (
    "Error: the program was interrupted while this ran. It may have taken effect, in part or whole: look before you "
    "do it again."
)
WENT_BACK = (
    "Error: this was run before the session went back to this point, and may have taken effect: look before you do it "
    "again."
)
CANCELLED = "Error: this was cancelled while it ran. It may have taken effect, in part or whole."
NOT_RUN = "Error: this was not run, because the user said something first."
BROKEN_CALL = "Error: the answer broke off in this call, so it was not run. Make it again."
TOO_MANY = "Error: this was not run: one answer may hold at most {most} calls."
