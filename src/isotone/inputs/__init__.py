"""From the raw row to what the network sees."""
