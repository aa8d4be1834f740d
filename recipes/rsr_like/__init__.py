"""A corpus under the names of RSR2015 part I, of made-up voices or of AudioMNIST: ``python -m recipes.rsr_like``."""
