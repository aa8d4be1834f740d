"""How good scores are: error rates, detection costs, Cllr, and how sure we are of them.

Every metric takes ``(scores, labels)``, a labelled `TrialList`, or `SortedScores`, which several metrics can share.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
