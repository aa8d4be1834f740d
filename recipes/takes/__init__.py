"""``python -m recipes.takes``: what known target scores of an enrolment are worth to the score model."""
