from .corpora import (
    CORPORA as CORPORA,
    read_audiomnist as read_audiomnist,
    read_corpus as read_corpus,
    read_manifest as read_manifest,
    read_rsr2015 as read_rsr2015,
)
from .degradations import (
    AdditiveNoise as AdditiveNoise,
    Codec as Codec,
    Degradation as Degradation,
    TelephoneBand as TelephoneBand,
    with_background as with_background,
)
from .extraction import (
    Extracted as Extracted,
    extract_features as extract_features,
)
from .features import FeatureOptions as FeatureOptions
from .recognizer import (
    Recognizer as Recognizer,
    RecognizerOptions as RecognizerOptions,
    train_recognizer as train_recognizer,
)
from .recordings import (
    Corpus as Corpus,
    Recording as Recording,
    Split as Split,
    role_permutations as role_permutations,
    split_speakers as split_speakers,
)
from .system import (
    TextDependentSystem as TextDependentSystem,
    run_recognizer as run_recognizer,
)
