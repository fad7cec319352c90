"""What a model is: window, limits, prices, family, cache and signature rules."""
