"""The golden values are made in an environment of their own, with programs that are not installed here."""

collect_ignore = ["golden/make_golden.py", "golden/forensic/make_lir.py"]
