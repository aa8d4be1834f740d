"""The lists of RSR2015 decide about sets, enrolments and tests; what is wrong with them is said."""

import pytest

from evenscore import FileError
from recipes.text_dependent import Split, read_corpus, read_rsr2015
from recipes.text_dependent.rsr2015 import read_rsr2015_lists, role_of_number, speakers_of_set

SPEAKERS = ["m001", "m051", "m052", "m101", "m102", "f001", "f048", "f095"]


@pytest.fixture
def root(tmp_path):
    """Files and lists of a few speakers, with phrases of parts II and III in the same folders."""
    for speaker in SPEAKERS:
        folder = tmp_path / "sph" / ("male" if speaker[0] == "m" else "female") / speaker
        folder.mkdir(parents=True)
        for session in range(1, 10):
            for phrase in (1, 30, 31, 61):
                (folder / f"{speaker}_{session:02d}_{phrase:03d}.sph").write_bytes(b"NIST_1A")
    for name, speakers in {
        "dev_m": ["m051", "m052"], "dev_f": ["f048"], "eval_m": ["m101", "m102"], "eval_f": ["f095"]
    }.items():  # fmt: skip
        write_lists(tmp_path, name, speakers)
    return tmp_path


def enrolment(speaker, phrase, sessions=("01", "04", "07")):
    folder = "male" if speaker[0] == "m" else "female"
    return f"{speaker}_{phrase} " + ",".join(f"{folder}/{speaker}/{speaker}_{one}_{phrase}.sph" for one in sessions)


def write_lists(root, name, speakers, models=("001", "030"), tests=("02", "03", "05", "06", "08", "09")):
    (root / "key" / "part1" / "trn").mkdir(parents=True, exist_ok=True)
    (root / "key" / "part1" / "ndx").mkdir(parents=True, exist_ok=True)
    trn = [enrolment(speaker, phrase) for speaker in speakers for phrase in models]
    (root / "key" / "part1" / "trn" / f"3sesspwd_{name}.trn").write_text("\n".join(trn) + "\n")
    ndx = [
        f"{model}_{phrase},{speaker}/{speaker}_{session}_{said}.sph,N,N,N,N"
        for model in speakers
        for phrase in models
        for speaker in speakers
        for said in models
        for session in tests
    ]
    (root / "key" / "part1" / "ndx" / f"3sess-pwd_{name}.ndx").write_text("\n".join(ndx) + "\n")


def edit(root, name, change):
    path = next((root / "key" / "part1").rglob(name))
    path.write_text(change(path.read_text()))


def names(corpus, speaker):
    return [recording.name[5:] for recording in corpus.of([speaker])]


def test_without_changes_lists_say_what_the_numbers_say(root):
    corpus = read_rsr2015(root)
    assert read_rsr2015_lists(root) is not None
    assert corpus == read_rsr2015(root / "sph")
    assert corpus == read_corpus("rsr2015", root)
    assert corpus.phrases == ("001", "030")
    assert len(corpus.recordings) == len(SPEAKERS) * 2 * 9


def test_lists_may_be_one_folder_below(root, tmp_path_factory):
    above = tmp_path_factory.mktemp("above")
    (above / "RSR2015_V1").symlink_to(root, target_is_directory=True)
    assert read_rsr2015_lists(above).role_of == read_rsr2015_lists(root).role_of


def test_what_is_not_listed_takes_no_part(root):
    edit(root, "3sess-pwd_eval_m.ndx", lambda text: text.replace("m102_09_030", "m102_08_030"))
    edit(root, "3sesspwd_dev_m.trn", lambda text: text.replace(enrolment("m052", "030") + "\n", ""))
    corpus = read_rsr2015(root)
    assert "030-09" not in names(corpus, "m102")
    assert names(corpus, "m052") == [f"001-{n:02d}" for n in range(1, 10)] + [
        f"030-{n}" for n in ("02", "03", "05", "06", "08", "09")
    ]
    assert len(names(corpus, "m001")) == 18  # all of the background


def test_lists_go_before_numbers(root):
    edit(root, "3sesspwd_eval_m.trn", lambda text: "\n".join(enrolment("m001", phrase) for phrase in ("001", "030")))
    edit(root, "3sess-pwd_eval_m.ndx", lambda text: text.replace("m101", "m001").replace("m102", "m001"))
    corpus = read_rsr2015(root)
    assert corpus.split == Split(("f001",), ("f048", "m051", "m052"), ("f095", "m001"))  # m101, m102 are left out


def test_sessions_are_those_of_the_lists(root):
    for path in (root / "key" / "part1").rglob("*.*"):
        kept = path.read_text()
        path.write_text(kept.replace("_04_", "_05_") if path.suffix == ".trn" else kept.replace("_05_", "_04_"))
    assert read_rsr2015(root).enroll_sessions == ("01", "05", "07")
    assert read_rsr2015(root, enroll_sessions=["01"]).enroll_sessions == ("01",)  # then lists are left aside


def test_without_trials_all_other_sessions_are_tests(root):
    for path in (root / "key" / "part1" / "ndx").iterdir():
        path.unlink()
    edit(root, "3sesspwd_dev_m.trn", lambda text: text.replace(enrolment("m052", "030") + "\n", ""))
    corpus = read_rsr2015(root)
    assert len(names(corpus, "m051")) == 18
    assert len(names(corpus, "m052")) == 18 - 3


def test_listed_recordings_must_be_there(root):
    (root / "sph" / "male" / "m101" / "m101_02_001.sph").unlink()
    with pytest.raises(FileError, match=r"part1: m101_02_001 is listed, but there is no such recording \(1 in all\)"):
        read_rsr2015(root)
    corpus = read_rsr2015(root, skip_unreadable=True)
    assert corpus.skipped == (f"m101_02_001: there is no such recording, but it is listed in {root / 'key' / 'part1'}",)
    assert len(read_rsr2015(root / "sph").recordings) == len(corpus.recordings)


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("3sesspwd_eval_m.trn", lambda text: "\n" + text.replace("m102_04", "m101_04"), r"eval_m.trn:4: expected"),
        ("3sesspwd_eval_m.trn", lambda text: "m101_001\n", r"eval_m.trn:1: expected a model and its files, such as"),
        ("3sesspwd_eval_m.trn", lambda text: "speaker m101\n", r"eval_m.trn:1: expected .* sph/ as the root"),
        ("3sess-pwd_dev_f.ndx", lambda text: "f048_001 f048_030\n", r"dev_f.ndx: there is no trial in it such as"),
        ("3sess-pwd_dev_f.ndx", lambda text: "", r"dev_f.ndx: it cannot be read \(cannot mmap an empty file\)"),
        ("3sess-pwd_dev_f.ndx", lambda text: text.replace("_05_", "_04_"), r"f048_04_001 is tested, but"),
    ],
)  # fmt: skip
def test_lists_that_cannot_be_are_refused(root, name, change, problem):
    edit(root, name, change)
    with pytest.raises(FileError, match=problem):
        read_rsr2015(root)


# Trials with the right phrase, by Larcher et al. (2014).
PUBLISHED = {
    ("development", "m"): (8_931, 437_631),
    ("development", "f"): (8_419, 387_230),
    ("evaluation", "m"): (10_244, 573_664),
    ("evaluation", "f"): (8_810, 422_880),
}


@pytest.mark.parametrize(("role", "gender"), PUBLISHED)
def test_the_sets_have_the_published_trials_but_for_missing_recordings(role, gender):
    people = len(speakers_of_set(gender, role))
    complete = people * 30 * 6, people * 30 * 6 * (people - 1)
    for found, whole in zip(PUBLISHED[role, gender], complete, strict=True):
        assert 0.99 * whole < found < whole


def test_every_speaker_is_in_one_set():
    sets = {
        (gender, role): speakers_of_set(gender, role)
        for gender in "mf"
        for role in ("background", "development", "evaluation")
    }
    assert [len(found) for found in sets.values()] == [50, 50, 57, 47, 47, 49]
    for (gender, role), found in sets.items():
        assert all(role_of_number(speaker) == role and speaker[0] == gender for speaker in found)
    assert Split(*(sets["m", role] + sets["f", role] for role in ("background", "development", "evaluation")))
