from .page import (
    require_report as require_report,
)
from .page import (
    write_report as write_report,
)
