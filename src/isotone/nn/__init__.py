"""What learns: layers of bounded slope, and the networks made of them."""
