"""From the table that a user names to what a network learns from: columns, target and rows."""
