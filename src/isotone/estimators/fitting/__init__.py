"""From prepared rows to one frozen network: trials, members, the search and the fit."""
