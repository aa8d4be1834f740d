from .fit import (
    LocationScaleFit as LocationScaleFit,
)
from .fit import (
    fit_location_scale as fit_location_scale,
)
from .fit import (
    location_scale_bound as location_scale_bound,
)
from .normalizer import LocationScaleNormalizer as LocationScaleNormalizer
from .parameters import LocationScaleModel as LocationScaleModel
