"""Version control for a context window: keep an LLM agent inside its window without losing anything."""
