from .contributions import (
    Contributions as Contributions,
    contributions as contributions,
)
from .features import (
    ScalePrior as ScalePrior,
    evidence_features as evidence_features,
    shrunk_log_scale as shrunk_log_scale,
    trial_moments as trial_moments,
)
from .fit import fit_evidence as fit_evidence
from .head import (
    EvidenceHead as EvidenceHead,
    Penalties as Penalties,
)
from .model import (
    CohortEvidence as CohortEvidence,
    TrainingReport as TrainingReport,
)
from .normalizer import EvidenceNormalizer as EvidenceNormalizer
from .own_pairs import Ridges as Ridges
from .pair_space import (
    PairSpace as PairSpace,
    impostor_prediction as impostor_prediction,
    pair_space as pair_space,
    pair_space_of_vectors as pair_space_of_vectors,
    within_speaker_part as within_speaker_part,
)
from .training_trials import sampled_own_cohort as sampled_own_cohort
