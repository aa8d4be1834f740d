from .figures import (
    figure_format as figure_format,
    save_figure as save_figure,
)
from .formats import (
    FORMATS as FORMATS,
    Format as Format,
    ReadOptions as ReadOptions,
    Table as Table,
    output_format as output_format,
    read as read,
    read_embeddings as read_embeddings,
    read_scores as read_scores,
    read_speakers as read_speakers,
    read_trials as read_trials,
    sniff as sniff,
    write as write,
)
from .models import (
    load_verifier as load_verifier,
    read_model as read_model,
    save_verifier as save_verifier,
    write_model as write_model,
)
from .speakers import (
    Metadata as Metadata,
    read_metadata as read_metadata,
)
from .streams import spooled as spooled
