"""Claims tried a great many times: the order of computed scores, and survival of kills."""
