"""From checked rows to one frozen network: views, members, the search and the fit."""
