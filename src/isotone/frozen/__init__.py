"""The model: read-only numbers, their file, and everything that scores with them."""
