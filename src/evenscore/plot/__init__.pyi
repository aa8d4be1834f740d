from .classes import (
    plot_histograms as plot_histograms,
    plot_norm_effect as plot_norm_effect,
    plot_qq as plot_qq,
)
from .det import plot_det as plot_det
from .llrs import (
    plot_bayes_error as plot_bayes_error,
    plot_ece as plot_ece,
    plot_reliability as plot_reliability,
    plot_tippett as plot_tippett,
)
from .style import figure_style as figure_style
