"""Text-dependent speaker recognition from speech to score tables, after the experiment of the paper.

A GMM-UBM recognizer with eigenchannels (after Kenny et al., 2014) on RSR2015 part I, AudioMNIST, or recordings of your
own. Speech needs the extra ``evenscore[speech]``; names load when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
