"""Readers of corpora find what is there, in one order, and say what is wrong."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from evenscore import FileError, InputError
from recipes.text_dependent import (
    Corpus,
    Recording,
    Split,
    read_audiomnist,
    read_corpus,
    read_manifest,
    read_rsr2015,
    role_permutations,
    split_speakers,
)


def rsr_tree(root, speakers, suffix=".sph", sessions=(1, 2, 4), phrases=(1, 30, 31)):
    for speaker in speakers:
        folder = root / "sph" / ("male" if speaker[0] == "m" else "female") / speaker
        folder.mkdir(parents=True)
        for session in sessions:
            for phrase in phrases:
                (folder / f"{speaker}_{session:02d}_{phrase:03d}{suffix}").write_bytes(b"NIST_1A")
    return root


def audiomnist_tree(root, speakers=("01", "02"), takes=(0, 2, 10), suffix=".flac", meta=True):
    for speaker in speakers:
        (root / "data" / speaker).mkdir(parents=True)
        for digit in (0, 7):
            for take in takes:
                (root / "data" / speaker / f"{digit}_{speaker}_{take}{suffix}").write_bytes(b"fLaC")
    if meta:
        facts = {speaker: {"gender": "male" if speaker == "01" else "female", "age": 30} for speaker in speakers}
        (root / "data" / "audioMNIST_meta.txt").write_text(json.dumps(facts))
    return root


ENDS = ["m001", "m050", "m051", "m100", "m101", "m157", "f001", "f047", "f048", "f094", "f095", "f143"]


def test_rsr2015_has_its_sets_sessions_and_30_phrases(tmp_path):
    corpus = read_rsr2015(rsr_tree(tmp_path, ENDS))
    assert corpus.split == Split(
        ("m001", "m050", "f001", "f047"), ("m051", "m100", "f048", "f094"), ("m101", "m157", "f095", "f143")
    )
    assert corpus.phrases == ("001", "030")  # 031 is of part II
    first = corpus.of(["m051"])[0]
    assert (first.gender, first.session, first.path.name) == ("m", "01", "m051_01_001.sph")
    assert [corpus.is_enrolment(one) for one in corpus.of(["f001"])[:3]] == [True, False, True]
    assert len(corpus.recordings) == 12 * 3 * 2


def test_lists_take_the_place_of_the_usual_sets(tmp_path):
    rsr_tree(tmp_path, ["m001", "m002", "m003"], suffix=".wav")
    (tmp_path / "sets").write_text("m003 background\nm001 development\nm002 evaluation\n")
    corpus = read_rsr2015(tmp_path, sets=tmp_path / "sets", enroll_sessions=["02"])
    assert corpus.split == Split(("m003",), ("m001",), ("m002",))
    assert corpus.enroll_sessions == ("02",)
    assert read_rsr2015(tmp_path).split is None  # all three are background speakers
    (tmp_path / "sets").write_text("m003 training\nm001 development\nm002 evaluation\n")
    with pytest.raises(FileError, match="'training' is not a set; the sets are background"):
        read_rsr2015(tmp_path, sets=tmp_path / "sets")
    (tmp_path / "sets").write_text("m003 background\n")
    with pytest.raises(FileError, match="speaker 'm001' is missing"):
        read_rsr2015(tmp_path, sets=tmp_path / "sets")


def test_the_same_recording_twice_is_refused(tmp_path):
    rsr_tree(tmp_path / "a", ["m001"])
    rsr_tree(tmp_path / "b", ["m001"], suffix=".wav")
    with pytest.raises(InputError, match="2 recordings 'm001-001-01'"):
        read_rsr2015(tmp_path)


@pytest.mark.parametrize("suffix", [".flac", ".wav"])
def test_audiomnist_has_digits_as_phrases_and_takes_as_sessions(tmp_path, suffix):
    corpus = read_audiomnist(audiomnist_tree(tmp_path, suffix=suffix))
    assert corpus == read_audiomnist(tmp_path / "data")
    assert corpus.gender == {"01": "m", "02": "f"}
    assert [one.name for one in corpus.of(["02"])][:4] == ["02-0-00", "02-0-02", "02-0-10", "02-7-00"]
    assert corpus.split is None
    assert read_corpus("audiomnist", tmp_path) == corpus


def test_audiomnist_needs_its_facts(tmp_path):
    with pytest.raises(FileError, match=r"audioMNIST_meta.txt: there is no such file"):
        read_audiomnist(audiomnist_tree(tmp_path, meta=False))
    (tmp_path / "data" / "audioMNIST_meta.txt").write_text('{"01": {"gender": "male"}, "02": {"age": 3}}')
    with pytest.raises(FileError, match=r"\[02\]: expected a speaker with a gender"):
        read_audiomnist(tmp_path)


@pytest.mark.parametrize("read", [read_rsr2015, read_audiomnist])
def test_directories_without_recordings_are_refused(tmp_path, read):
    with pytest.raises(FileError, match="no file of"):
        read(tmp_path)
    with pytest.raises(FileError, match="no such directory"):
        read(tmp_path / "absent")


def test_empty_files_are_refused_or_listed(tmp_path):
    audiomnist_tree(tmp_path)
    (tmp_path / "data" / "02" / "7_02_2.flac").write_bytes(b"")
    with pytest.raises(FileError, match=r"7_02_2.flac: the file is empty; get it again, or skip"):
        read_audiomnist(tmp_path)
    corpus = read_audiomnist(tmp_path, skip_unreadable=True)
    assert len(corpus.recordings) == 11
    assert [Path(reason.partition(":")[0]).name for reason in corpus.skipped] == ["7_02_2.flac"]


HEADER = "speaker,gender,phrase,session,path"


def manifest(folder, *rows, header=HEADER):
    for name in "abc":
        (folder / f"{name}.wav").write_bytes(b"RIFF")
    (folder / "list.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder / "list.csv"


def test_a_manifest_may_have_sets(tmp_path):
    path = manifest(
        tmp_path,
        "cat,,hi,1,c.wav,evaluation",
        "ann,female,hi,1,a.wav,background",
        "bob,M,hi,1,b.wav,development",
        header=HEADER + ",set",
    )
    corpus = read_manifest(path, enroll_sessions=["1"])
    assert corpus.split == Split(("ann",), ("bob",), ("cat",))
    assert corpus.gender == {"ann": "f", "bob": "m", "cat": ""}
    assert corpus.recordings[0].path == tmp_path / "a.wav"


@pytest.mark.parametrize(
    ("rows", "header", "problem"),
    [
        (["ann,f,hi,1"], "speaker,gender,phrase,session", "column 'path' is missing"),
        (["ann,x,hi,1,a.wav"], HEADER, "list.csv:2: gender is 'x'"),
        (["ann,f,,1,a.wav"], HEADER, "list.csv:2: speaker, phrase, session or path is empty"),
        (["ann,f,hi,1,absent.wav"], HEADER, "absent.wav: there is no such file"),
        ([], HEADER, "it lists no recordings"),
        (["ann,f,hi,1,a.wav,train"], HEADER + ",set", "'train' is not a set"),
        (["ann,f,hi,1,a.wav,background", "ann,f,hi,2,b.wav,evaluation"], HEADER + ",set", "in two sets"),
    ],
)
def test_a_wrong_manifest_says_what_is_wrong(tmp_path, rows, header, problem):
    with pytest.raises(FileError, match=problem):
        read_manifest(manifest(tmp_path, *rows, header=header), enroll_sessions=["1"])


def test_absent_files_of_a_manifest_are_skipped_on_request(tmp_path):
    path = manifest(tmp_path, "ann,f,hi,1,a.wav", "ann,f,hi,2,absent.wav")
    corpus = read_corpus("manifest", path, enroll_sessions=["1"], skip_unreadable=True)
    assert [one.session for one in corpus.recordings] == ["1"]
    assert corpus.skipped == (f"{tmp_path / 'absent.wav'}: there is no such file",)
    with pytest.raises(InputError, match="does not say which sessions enrol"):
        read_corpus("manifest", path)


@pytest.mark.parametrize(
    ("recordings", "problem"),
    [
        ([], "there are no recordings"),
        ([("ann", "f", "my voice", "1")], "phrase 'my voice' of .* has a space"),
        ([("ann", "f", "hi", "1"), ("ann", "m", "hi", "2")], "'ann' has two genders"),
        ([("ann", "f", "hi", "2")], "no recording is of the enrolment sessions 1"),
    ],
)
def test_a_corpus_is_checked(recordings, problem):
    with pytest.raises(InputError, match=problem):
        Corpus([Recording(*one, Path("a.wav")) for one in recordings], ["1"])


@given(st.lists(st.sampled_from("mf"), min_size=3, max_size=30), st.integers(0, 5))
def test_speakers_are_split_evenly(genders, seed):
    corpus = Corpus([Recording(f"s{n}", gender, "0", "1", Path()) for n, gender in enumerate(genders)], ["1"])
    split = split_speakers(corpus, seed=seed)
    assert split == split_speakers(corpus, seed=seed)
    sets = [split.background, split.development, split.evaluation]
    assert sorted(sum(sets, ())) == list(corpus.speakers)
    assert max(map(len, sets)) - min(map(len, sets)) <= 1
    for gender in "mf":
        counts = [sum(corpus.gender[speaker] == gender for speaker in group) for group in sets]
        assert max(counts) - min(counts) <= 1


def test_another_seed_gives_other_sets():
    corpus = Corpus([Recording(f"s{n}", "m", "0", "1", Path()) for n in range(30)], ["1"])
    assert len({split_speakers(corpus, seed=seed) for seed in range(5)}) == 5


def test_roles_are_given_in_six_ways_with_the_same_background_side_by_side():
    split = Split(("a", "d"), ("b",), ("c",))
    roles = role_permutations(split)
    assert roles[0] == split
    assert len(set(roles)) == 6
    assert [one.background for one in roles[::2]] == [one.background for one in roles[1::2]]


def test_too_few_speakers_are_refused():
    with pytest.raises(InputError, match="1 speakers cannot be split"):
        split_speakers(Corpus([Recording("ann", "f", "0", "1", Path())], ["1"]))
    with pytest.raises(InputError, match="no evaluation speakers"):
        Split(("ann",), ("bob",), ())
