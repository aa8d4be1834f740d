"""Cohorts of single trials, cut out of the score blocks by hand."""

import numpy as np

from evenscore import ScoreBlocks, ScoreMatrix


def single_trial(blocks, enrolment, test, gone):
    """Return one trial of a matrix that is its own cohort, without some speakers in the cohort.

    Nobody knows the trial's speakers any more, so that no norm can leave anybody else out.
    """
    own = blocks.trials
    row, column = list(own.enroll_ids).index(enrolment), list(own.test_ids).index(test)
    rows = [at for at, name in enumerate(blocks.cohort_enroll_speakers) if name not in gone]
    columns = [at for at, name in enumerate(blocks.cohort_test_speakers) if name not in gone]
    enrolments, tests = [f"cohort {at}" for at in rows], [f"cohort {at}" for at in columns]
    return ScoreBlocks(
        ScoreMatrix(own.scores[np.ix_([row], [column])], [enrolment], [test]),
        enroll=ScoreMatrix(own.scores[np.ix_([row], columns)], [enrolment], tests),
        test=ScoreMatrix(own.scores[np.ix_(rows, [column])], enrolments, [test]),
        cohort=ScoreMatrix(own.scores[np.ix_(rows, columns)], enrolments, tests),
        cohort_enroll_speakers=blocks.cohort_enroll_speakers[rows],
        cohort_test_speakers=blocks.cohort_test_speakers[columns],
    )
