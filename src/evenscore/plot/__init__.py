"""Figures, drawn with matplotlib (``pip install 'evenscore[plot]'``), which loads when the first one is drawn.

Every function draws on the ``Axes`` that it is given, or on those of a new figure, and returns them. Several systems
are a mapping from name to scores.
"""

from evenscore.plot.bayes_error import plot_bayes_error
from evenscore.plot.cohort_choice import plot_cohort_choice
from evenscore.plot.contributions import plot_contributions
from evenscore.plot.det import plot_det
from evenscore.plot.histograms import plot_histograms
from evenscore.plot.norm_effect import plot_norm_effect
from evenscore.plot.reliability import plot_reliability
from evenscore.plot.saving import FIGURE_FORMATS, save_figure
from evenscore.plot.style import figure_style
from evenscore.plot.tippett import plot_tippett

__all__ = [
    "FIGURE_FORMATS",
    "figure_style",
    "plot_bayes_error",
    "plot_cohort_choice",
    "plot_contributions",
    "plot_det",
    "plot_histograms",
    "plot_norm_effect",
    "plot_reliability",
    "plot_tippett",
    "save_figure",
]
