"""What training costs: seconds per epoch, from memory and from disk."""
