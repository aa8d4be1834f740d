"""The report of a comparison: one HTML file to look at, which opens offline (``pip install 'evenscore[report]'``).

`content` says what is on the page, `page` makes it HTML, ``template/`` holds its markup, style and scripts.
"""

from evenscore.report.page import require_report, write_report

__all__ = ["require_report", "write_report"]
