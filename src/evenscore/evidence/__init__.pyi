from .fit import (
    EvidenceModel as EvidenceModel,
    evidence_norm as evidence_norm,
    fit_evidence as fit_evidence,
)
from .head import Head as Head
from .pair_space import PairSpace as PairSpace
