"""Settings as a user states them, for type checkers: each error below is expected, and an unused ignore is one too."""

from __future__ import annotations

from typing import Any

import windowsill


async def writer(prompt: str) -> str:
    return prompt


class Mine(windowsill.Strategy):
    name = "mine"


session = windowsill.Session.open(
    "s", model="gpt-5", budget=32_000, high=0.8, low="50%", recall=(2_000, 0.1), strategy="mask+condense", writer=writer
)
windowsill.Session.open("s", strategy=Mine(), scope="project", project="p", wait=None, strategies={"mask": {"keep": 4}})
windowsill.Session.open("s", buget=32_000)  # type: ignore[call-arg]
windowsill.Session.open("s", window="large")  # type: ignore[arg-type]
windowsill.Session.open("s", scope="world")  # type: ignore[arg-type]
windowsill.Session.from_snapshot("place", modle="gpt-5")  # type: ignore[call-arg]

payload = windowsill.fit([], model="gpt-5", budget="32k", tokenizer="o200k_base", max_output=100)
windowsill.fit([], budget=32_000, overhaed=4)  # type: ignore[call-arg]
body: dict[str, Any] = payload.to("anthropic")

engine = windowsill.Engine(session, model="openai:gpt-5", max_turns=3)
windowsill.Engine(session, model="openai:gpt-5", max_turn=3)  # type: ignore[call-arg]
