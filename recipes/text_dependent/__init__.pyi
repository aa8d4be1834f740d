from .corpora import (
    CORPORA as CORPORA,
)
from .corpora import (
    read_audiomnist as read_audiomnist,
)
from .corpora import (
    read_corpus as read_corpus,
)
from .corpora import (
    read_manifest as read_manifest,
)
from .corpora import (
    read_rsr2015 as read_rsr2015,
)
from .degradations import (
    AdditiveNoise as AdditiveNoise,
)
from .degradations import (
    Codec as Codec,
)
from .degradations import (
    Degradation as Degradation,
)
from .degradations import (
    TelephoneBand as TelephoneBand,
)
from .degradations import (
    with_background as with_background,
)
from .extraction import (
    Extracted as Extracted,
)
from .extraction import (
    extract_features as extract_features,
)
from .features import FeatureOptions as FeatureOptions
from .recognizer import (
    Recognizer as Recognizer,
)
from .recognizer import (
    RecognizerOptions as RecognizerOptions,
)
from .recognizer import (
    train_recognizer as train_recognizer,
)
from .recordings import (
    Corpus as Corpus,
)
from .recordings import (
    Recording as Recording,
)
from .recordings import (
    Split as Split,
)
from .recordings import (
    role_permutations as role_permutations,
)
from .recordings import (
    split_speakers as split_speakers,
)
from .system import (
    TextDependentSystem as TextDependentSystem,
)
from .system import (
    run_recognizer as run_recognizer,
)
