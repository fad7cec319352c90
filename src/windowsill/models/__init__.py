"""What a model is: window, limits, prices, family, cache and signature rules."""

from windowsill.models.find import find, names, signs_calls, wants_reasoning
from windowsill.models.model import Demands, Model, PriceList, Ratios
from windowsill.models.overflow import is_overflow, learn_window
from windowsill.models.prices import Prices, prices

__all__ = [
    "Demands",
    "Model",
    "PriceList",
    "Prices",
    "Ratios",
    "find",
    "is_overflow",
    "learn_window",
    "names",
    "prices",
    "signs_calls",
    "wants_reasoning",
]
