"""Trial lists as dictionaries: the slow, obvious twin of `TrialList` and `evenscore.tables.pairs`."""


def first_repeated_pair(pairs):
    """Return the positions of the first pair that is there already, and of its earlier twin."""
    seen = {}
    for place, pair in enumerate(pairs):
        if pair in seen:
            return seen[pair], place
        seen[pair] = place
    return None


def match(pairs, others):
    """Return for each pair its position among others, or -1."""
    place = {pair: at for at, pair in enumerate(others)}
    return [place.get(pair, -1) for pair in pairs]


def join(pairs, scores, key):
    """Return the triples (pair, score, label) of the pairs that are in the key, a dictionary."""
    return [(pair, score, key[pair]) for pair, score in zip(pairs, scores, strict=True) if pair in key]


def pairs_of(trials):
    """Return the two ids of each trial of a `TrialList`."""
    return list(zip(trials.enroll.tolist(), trials.test.tolist(), strict=True))
