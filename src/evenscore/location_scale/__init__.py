"""The location-scale score model: hidden variables move the mean and the spread of scores."""

from evenscore.location_scale.fit import LocationScaleFit, fit_location_scale, location_scale_bound
from evenscore.location_scale.normalizer import LocationScaleNormalizer
from evenscore.location_scale.parameters import LocationScaleModel

__all__ = [
    "LocationScaleFit",
    "LocationScaleModel",
    "LocationScaleNormalizer",
    "fit_location_scale",
    "location_scale_bound",
]
