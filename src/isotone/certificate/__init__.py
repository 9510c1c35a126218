"""What the stored numbers of a frozen network prove."""
