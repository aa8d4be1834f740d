"""Text formats read by a plain loop over lines, straight from their description; nothing is shared with the package."""

import math

LABELS = {"target": 1, "tgt": 1, "1": 1, "nontarget": 0, "imp": 0, "0": 0}


def read_trials(text, name):
    """Return one (enroll, test, score, label, measures) per line; None where a format has no such column."""
    lines = [line.removesuffix("\r").split() for line in text.split("\n") if line.strip()]
    if name in ("csv", "tsv", "nist", "asvspoof5"):
        return _headed([line.removesuffix("\r") for line in text.split("\n") if line], "," if name == "csv" else "\t")
    return [_trial(fields, name) for fields in lines]


def _trial(fields, name):
    match name, fields:
        case "kaldi", [e, t]:
            return e, t, None, None, {}
        case "kaldi", [e, t, last] if last in LABELS and last not in "01":
            return e, t, None, LABELS[last], {}
        case "kaldi", [e, t, score]:
            return e, t, float(score), None, {}
        case "wespeaker", [e, t, label]:
            return e, t, None, LABELS[label], {}
        case "wespeaker", [e, t, score, label]:
            return e, t, float(score), LABELS[label], {}
        case "wespeaker", [e, t, score, label, *extra]:
            measures = dict(zip(("mag_e", "mag_t", "mu_e", "mu_t"), map(float, extra), strict=True))
            return e, t, float(score), LABELS[label], measures
        case "speechbrain", [e, t, label, score]:
            return e, t, float(score), LABELS[label], {}
        case "espnet", [pair, score, label]:
            e, t = pair.split("*")
            return e, t, float(score), LABELS[label], {}
        case "bob", [claimed, real, probe, score]:
            return claimed, probe, float(score), int(claimed == real), {}
        case "voxceleb", [label, e, t]:
            return e, t, None, LABELS[label], {}
    raise ValueError(f"{name}: {fields}")


def _headed(lines, separator):
    names = lines[0].split(separator)
    roles = {"enroll": "e", "modelid": "e", "spk": "e", "test": "t", "segmentid": "t", "filename": "t", "score": "s",
             "LLR": "s", "sasv-score": "s", "label": "l", "targettype": "l"}  # fmt: skip
    trials = []
    for line in lines[1:]:
        row = dict.fromkeys("etsl")
        measures = {}
        for name, text in zip(names, line.split(separator), strict=True):
            if name in roles:
                row[roles[name]] = text
            else:
                measures[name] = math.nan if text in ("", "-") else float(text)
        score = None if row["s"] is None else float(row["s"])
        label = None if row["l"] is None else LABELS.get(row["l"], -1)
        trials.append((row["e"], row["t"], score, label, measures))
    return trials
