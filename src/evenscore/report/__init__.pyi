from .page import render_report as render_report
