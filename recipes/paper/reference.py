"""What the paper reports on RSR2015 part I: Swart and Brümmer (2017), figure 4 and the table of variances."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["PAPER_EER", "PAPER_VARIANCES"]

#: Equal error rates, as fractions.
PAPER_EER: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "female": {"raw": 0.0053, "ZT": 0.0027, "LGSM 1D": 0.0038, "LGSM 2D": 0.0027},
        "male": {"raw": 0.0124, "ZT": 0.0073, "LGSM 1D": 0.0080, "LGSM 2D": 0.0076},
    }
)

#: Variances of the score model; the paper does not say of which dimension.
PAPER_VARIANCES: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "female": {"sigma2_non": 23.4, "nu_non": 3.5, "sigma2_tar": 58.7, "nu_tar": 55.0},
        "male": {"sigma2_non": 18.9, "nu_non": 4.1, "sigma2_tar": 55.7, "nu_tar": 66.3},
    }
)
