from .chunked_output import write_table as write_table
from .metadata import read_metadata as read_metadata
from .models import (
    load_calibration as load_calibration,
    load_evidence as load_evidence,
    load_model as load_model,
    load_plda as load_plda,
    save_calibration as save_calibration,
    save_evidence as save_evidence,
    save_model as save_model,
    save_plda as save_plda,
)
from .numpy_files import ArrayCache as ArrayCache
from .read_write import (
    read as read,
    read_embeddings as read_embeddings,
    read_scores as read_scores,
    read_speakers as read_speakers,
    read_trials as read_trials,
    write as write,
)
from .records import read_json as read_json
from .registry import (
    FORMATS as FORMATS,
    Format as Format,
    ReadOptions as ReadOptions,
    Table as Table,
)
from .score_set import (
    ScoreSet as ScoreSet,
    load_audiomnist_scores as load_audiomnist_scores,
    load_score_set as load_score_set,
    save_score_set as save_score_set,
)
from .score_tiles import open_scores as open_scores
from .sniffing import sniff as sniff
from .streams import spooled as spooled
from .verifiers import (
    load_verifier as load_verifier,
    save_verifier as save_verifier,
)
