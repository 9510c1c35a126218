"""How accurate and how fast the default estimators are, beside boosted trees."""
