from .formats import (
    FORMATS as FORMATS,
    Format as Format,
    ReadOptions as ReadOptions,
    Table as Table,
    output_format as output_format,
    read as read,
    read_scores as read_scores,
    read_speakers as read_speakers,
    read_trials as read_trials,
    write as write,
)
from .speakers import (
    Metadata as Metadata,
    read_metadata as read_metadata,
)
from .streams import spooled as spooled
