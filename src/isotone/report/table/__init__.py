"""What a report says about the rows of a table: counts, curves, outcomes, robustness."""
