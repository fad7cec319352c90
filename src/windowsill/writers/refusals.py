"""How models say that they will not: a short answer that begins in one of these ways is no summary."""

from __future__ import annotations

import re

SHORT = 600
"""Characters: a longer text is no refusal, whatever it begins with."""

_CANNOT = r"(?:can't|cannot|can not|won't|will not|am unable to|am not able to|must decline|have to decline|decline)"
_DOING = r"(?:help|assist|do|comply|fulfil|summar|provide|continue|process|create|write|share|discuss|with|that|this)"

_REFUSALS = tuple(
    re.compile(rf"\W*{form}", re.IGNORECASE)
    for form in (
        rf"(?:i'm |i am |we're |we are )?(?:so |very |really )?(?:sorry|afraid)\b.{{0,20}}\b(?:i|we) {_CANNOT}\b",
        rf"(?:i|we) {_CANNOT} (?:to )?{_DOING}",
        rf"as an ai\b.{{0,60}}\bi {_CANNOT}\b",
        r"申し訳.{0,60}(?:できません|できかねます|いたしかねます|お断り)",
        r"[^。\n]{0,30}(?:要約|お手伝い|お応え|対応|お答え)[^。\n]{0,10}(?:できません|できかねます)",
        r"(?:很?抱歉|对不起).{0,30}(?:无法|不能|不会)",
        r"죄송.{0,60}(?:없습니다|어렵습니다)",
    )
)


def is_refusal(answer: str) -> bool:
    """Whether an answer reads like a refusal."""
    if len(answer) > SHORT:
        return False
    plain = answer.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return any(form.match(plain) for form in _REFUSALS)
