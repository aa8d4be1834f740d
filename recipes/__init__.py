"""Programs over the public functions of evenscore; they come with its source, not with its package.

``python -m recipes.paper`` is the paper's experiment, from speech to its figure, ``python -m recipes.theory`` its
theory; both are run at the top of the tree. ``python -m recipes.takes`` shows
what known target scores of an enrolment are worth. `recipes.text_dependent` is the recognizer of the experiment, and
`recipes.adaptation` shows what adaptation without labels is worth.
"""
