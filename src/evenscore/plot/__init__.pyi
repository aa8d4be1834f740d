from .bayes_error import plot_bayes_error as plot_bayes_error
from .cohort_choice import plot_cohort_choice as plot_cohort_choice
from .contributions import plot_contributions as plot_contributions
from .cross_entropy import plot_ece as plot_ece
from .det import plot_det as plot_det
from .histograms import plot_histograms as plot_histograms
from .norm_effect import plot_norm_effect as plot_norm_effect
from .qq import plot_qq as plot_qq
from .reliability import plot_reliability as plot_reliability
from .style import (
    FIGURE_FORMATS as FIGURE_FORMATS,
    figure_style as figure_style,
    save_figure as save_figure,
)
from .tippett import plot_tippett as plot_tippett
