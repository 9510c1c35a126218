"""SQL: one SELECT that scores the raw table where it lives."""
