from .verifier import (
    Enrolled as Enrolled,
    Probe as Probe,
    Verifier as Verifier,
)
