"""What commands share with the terminal: options, thresholds, destinations and printing."""
