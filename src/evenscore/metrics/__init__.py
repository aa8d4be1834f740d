"""How good scores are: error rates, detection costs, Cllr, and how sure we are of them.

Every metric takes ``(scores, labels)`` or a labelled `TrialList`, scores that are not in memory, or `Points`, which
several metrics can share: `SortedScores`, or a `ScoreSummary`, of which a metric is the middle of its certain bounds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
