from .cluster import (
    connected as connected,
    dashboard_link as dashboard_link,
)
from .engine import (
    Engine as Engine,
    engine_for as engine_for,
)
