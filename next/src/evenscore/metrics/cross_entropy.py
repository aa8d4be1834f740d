"""The former name of `evenscore.metrics.cllr`, until nothing imports it any more."""

from evenscore.metrics.cllr import *  # noqa: F403
