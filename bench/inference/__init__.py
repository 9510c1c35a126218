"""What scoring costs: rows per second, memory, and the time of one event."""
