"""The playground: one HTML file that opens model files and tables in the browser.

Sources: `verifier/src` (the certificate in exact rationals) and `src` (what a report is made of),
joined into one worker; the scripts of `isotone.report`; and `web`. Nothing is installed with the
library: `make docs` writes the page into the site, `python -m playground` anywhere.
"""
