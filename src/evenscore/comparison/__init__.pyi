from .compare import (
    DEFAULT_METHODS as DEFAULT_METHODS,
    compare as compare,
)
from .folder import write_folder as write_folder
from .record import (
    METRICS as METRICS,
    Comparison as Comparison,
    DataSummary as DataSummary,
    Diagnostic as Diagnostic,
    Figures as Figures,
    MethodResult as MethodResult,
    Settings as Settings,
    SideSummary as SideSummary,
    Verdict as Verdict,
)
