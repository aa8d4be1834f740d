"""Small deterministic data for the acceptance cases, written without evenscore so that no bug of its can hide."""

import gzip
import struct
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import zarr

SEED = 20260101


class People:
    """Recordings with speakers, and hidden shifts that raise or lower all scores of a recording."""

    def __init__(self, rng, prefix, n_speakers, n_enroll, n_test, first=0):
        speakers = [f"spk{first + n:02d}" for n in range(n_speakers)]
        self.enroll = [f"{prefix}_{speaker}_e{k}" for speaker in speakers for k in range(n_enroll)]
        self.test = [f"{prefix}_{speaker}_t{k}" for speaker in speakers for k in range(n_test)]
        self.shift = {name: rng.normal(size=2) for name in self.enroll + self.test}

    @property
    def speakers(self):
        return {name: speaker_of(name) for name in self.enroll + self.test}


def speaker_of(name):
    return name.split("_")[1]


def draw_scores(rng, enroll, test):
    """Draw a score matrix: class mean, shifts of both recordings, which differ for the two classes, and noise."""
    scores = np.empty((len(enroll.enroll), len(test.test)))
    for i, e in enumerate(enroll.enroll):
        for j, t in enumerate(test.test):
            x, y = enroll.shift[e], test.shift[t]
            if speaker_of(e) == speaker_of(t):
                scores[i, j] = 3.0 + 0.5 * x[0] + 0.6 * x[1] + 0.3 * y[0] + 0.7 * y[1] + rng.normal(scale=1.2)
            else:
                scores[i, j] = 0.8 * x[0] + 0.5 * y[0] + rng.normal()
    return scores.round(6)


def write_list(path, enroll, test, scores, keep=None):
    rows = [
        f"{e} {t} {scores[i, j]:.6f}\n"
        for i, e in enumerate(enroll)
        for j, t in enumerate(test)
        if keep is None or keep[i, j]
    ]
    path.write_text("".join(rows))


def write_key(path, enroll, test, keep=None):
    words = ("nontarget", "target")
    rows = [
        f"{e} {t} {words[speaker_of(e) == speaker_of(t)]}\n"
        for i, e in enumerate(enroll)
        for j, t in enumerate(test)
        if keep is None or keep[i, j]
    ]
    path.write_text("".join(rows))


def write_map(path, speakers):
    path.write_text("".join(f"{name} {speaker}\n" for name, speaker in speakers.items()))


def make_data(folder):
    """Write all files into a folder."""
    folder = Path(folder)
    rng = np.random.default_rng(SEED)
    dev = People(rng, "dev", 20, 2, 3)
    trial = People(rng, "eval", 12, 2, 3, first=30)
    cohort = People(rng, "coh", 15, 2, 2, first=50)
    _make_blocks(folder, rng, dev, trial, cohort)
    _make_own_speakers(folder, rng)
    _make_phrases(folder, rng)
    _make_metadata(folder, rng, dev, trial, cohort)
    _make_embeddings(folder, rng)
    _make_formats(folder, rng)
    _make_special_keys(folder, rng)
    _make_broken(folder)


def _make_blocks(folder, rng, dev, trial, cohort):
    """Write the training scores, the four blocks S, S_e, S_t, S_I, a second system, and lists with gaps."""
    for name, rows, columns in (
        ("dev", dev, dev),
        ("trials", trial, trial),
        ("enroll", trial, cohort),
        ("test", cohort, trial),
        ("cohort", cohort, cohort),
        ("dev_x_eval", dev, trial),
        ("eval_x_dev", trial, dev),
    ):
        scores = draw_scores(rng, rows, columns)
        write_list(folder / f"{name}.scores", rows.enroll, columns.test, scores)
        if name in ("dev", "trials", "enroll", "test", "cohort"):
            ids = {"enroll_ids": np.array(rows.enroll), "test_ids": np.array(columns.test)}
            np.savez(folder / f"{name}.npz", scores=scores, **ids)
            write_store(folder / f"{name}.zarr", scores, **ids)
        if name in ("dev", "trials"):
            second = (0.7 * scores + rng.normal(scale=0.6, size=scores.shape)).round(6)
            write_list(folder / f"{name}2.scores", rows.enroll, columns.test, second)
        if name in ("dev", "trials", "cohort"):
            write_key(folder / f"{name}.key", rows.enroll, columns.test)
        keep = rng.random(scores.shape) < (0.4 if name == "trials" else 0.85)
        if name in ("dev", "trials", "enroll", "test", "cohort"):
            write_list(folder / f"{name}_gaps.scores", rows.enroll, columns.test, scores, keep)
        if name in ("dev", "trials", "cohort"):
            write_key(folder / f"{name}_gaps.key", rows.enroll, columns.test, keep)
    write_map(folder / "utt2spk", dev.speakers | trial.speakers)
    write_map(folder / "cohort.utt2spk", cohort.speakers)
    # Known targets among the cohort scores: two cohort recordings are further takes of a trial's speaker.
    (folder / "enroll.key").write_text(
        f"{trial.enroll[0]} {cohort.test[0]} target\n{trial.enroll[5]} {cohort.test[7]} target\n"
    )
    (folder / "test.key").write_text(f"{cohort.enroll[3]} {trial.test[4]} target\n")
    np.save(folder / "trials_store.npy", np.load(folder / "trials.npz")["scores"])
    (folder / "trials_store.enroll_ids").write_text("\n".join(trial.enroll) + "\n")
    (folder / "trials_store.test_ids").write_text("\n".join(trial.test) + "\n")


def write_store(path, scores, **ids):
    """Write a zarr store in ragged chunks; ids as NumPy text."""
    group = zarr.open_group(str(path), mode="w", **({"zarr_format": 2} if hasattr(zarr, "create_array") else {}))
    create = group.create_array if hasattr(zarr, "create_array") else group.create_dataset
    create("scores", data=scores, chunks=(7, 11), fill_value=float("nan"))
    for name, values in ids.items():
        create(name, data=values, chunks=values.shape)


def _make_own_speakers(folder, rng):
    """Write blocks whose cohort has some of the trials' speakers."""
    trial, cohort = People(rng, "own", 8, 2, 2), People(rng, "oc", 14, 1, 2, first=3)
    for name, rows, columns in (
        ("own_trials", trial, trial),
        ("own_enroll", trial, cohort),
        ("own_test", cohort, trial),
        ("own_cohort", cohort, cohort),
    ):
        write_list(folder / f"{name}.scores", rows.enroll, columns.test, draw_scores(rng, rows, columns))
    write_key(folder / "own_trials.key", trial.enroll, trial.test)
    one = People(rng, "oc", 1, 1, 2, first=3)  # a cohort of one speaker, who has trials
    write_list(folder / "own_one_enroll.scores", trial.enroll, one.test, draw_scores(rng, trial, one))
    write_map(folder / "own.utt2spk", trial.speakers)
    write_map(folder / "own_cohort.utt2spk", cohort.speakers)
    genders = {name: "fm"[int(speaker_of(name)[3:]) % 2] for name in trial.speakers | cohort.speakers}
    genders[trial.enroll[2]] = "-"
    write_map(folder / "own.gender", genders)


def _make_phrases(folder, rng):
    """Write training scores of two phrases, each a matrix of its own."""
    for phrase in ("pa", "pb"):
        people = People(rng, phrase, 14, 2, 3)
        write_list(folder / f"{phrase}.scores", people.enroll, people.test, draw_scores(rng, people, people))
        write_key(folder / f"{phrase}.key", people.enroll, people.test)


def _make_metadata(folder, rng, dev, trial, cohort):
    names = [name for people in (dev, trial, cohort) for name in people.enroll + people.test]
    genders = ["fm"[int(speaker_of(name)[3:]) % 2] for name in names]
    rows = [f"{name},{gender},{rng.uniform(5, 30):.3f}" for name, gender in zip(names, genders, strict=True)]
    (folder / "meta.csv").write_text("\n".join(["id,gender,snr", *rows]) + "\n")
    durations = (f"{name} {rng.uniform(1, 20):.3f}\n" for name in names)
    (folder / "utt2dur").write_text("".join(durations))
    words = {True: "target", False: "nontarget"}
    pairs = [(e, t) for e in trial.enroll for t in trial.test]
    header = "modelid\tsegmentid\ttargettype\tnum_enroll_segs\tphone_num_match\tgender\tsource_type\tlanguage"
    header += "\tsource_type_match\tlanguage_match\tdata_source"
    lines = [header]
    for e, t in pairs:
        same = speaker_of(e) == speaker_of(t)
        facts = ("13"[e.endswith("1")], "YN"[not same or t.endswith("2")], ("female", "male")[t.endswith("1")])
        tail = (
            ("pstn", "voip")[t.endswith("0")],
            ("tgl", "yue")[e.endswith("0")],
            "YN"[t.endswith("0")],
            "YN"[e.endswith("1")],
        )
        if not same:
            facts = (facts[0], "N", facts[2])
        lines.append("\t".join((e, t, words[same], *facts, *tail, "cmn2")))
    (folder / "nist.key").write_text("\n".join(lines) + "\n")


def _make_embeddings(folder, rng):
    """Write embeddings of training, evaluation and cohort speakers, and lists of trials between them."""
    for name, n_speakers, takes, first in (("dev", 20, 4, 0), ("eval", 10, 4, 30), ("cohort", 25, 2, 50)):
        ids = [f"x{name}_spk{first + n:02d}_{k}" for n in range(n_speakers) for k in range(takes)]
        voices = np.repeat(rng.normal(size=(n_speakers, 8)), takes, axis=0)
        vectors = (0.4 + voices + 0.6 * rng.normal(size=voices.shape)).round(6)
        speakers = [speaker_of(i) for i in ids]
        gender = ["fm"[int(s[3:]) % 2] for s in speakers]
        np.savez(
            folder / f"x{name}.npz",
            embeddings=vectors,
            ids=np.array(ids),
            speakers=np.array(speakers),
            gender=np.array(gender),
        )
        if name == "eval":
            enroll = [i for i in ids if i.endswith(("_0", "_1"))]
            test = [i for i in ids if i.endswith(("_2", "_3"))]
            write_key(folder / "x.trials", enroll, test, rng.random((len(enroll), len(test))) < 0.5)
            for part, members in (("enroll", enroll), ("test", test)):
                at = [ids.index(i) for i in members]
                np.savez(
                    folder / f"x{part}.npz",
                    embeddings=vectors[at],
                    ids=np.array(members),
                    speakers=np.array([speaker_of(i) for i in members]),
                    gender=np.array([gender[k] for k in at]),
                )
            lines = (f"model{n} {' '.join(enroll[2 * n : 2 * n + 2])}\n" for n in range(n_speakers))
            (folder / "x.models").write_text("".join(lines))
            words = ("nontarget", "target")
            listed = (
                f"model{n} {t} {words[speaker_of(t) == f'spk{30 + n}']}\n" for n in range(n_speakers) for t in test
            )
            (folder / "x.models.trials").write_text("".join(listed))
        if name == "dev":
            parts = {"xdev_enroll": ("_0", "_1"), "xdev_test": ("_2", "_3")}
            for part, ends in parts.items():
                at = [k for k, i in enumerate(ids) if i.endswith(ends)]
                chosen = {"ids": np.array([ids[k] for k in at]), "speakers": np.array([speakers[k] for k in at])}
                np.savez(folder / f"{part}.npz", embeddings=vectors[at], **chosen)
    transform = np.eye(8) + 0.2 * rng.normal(size=(8, 8)).round(6)
    rows = "\n".join("  " + " ".join(map(str, row)) for row in transform.tolist())
    psi = " ".join(str(2.5 - 0.3 * k) for k in range(8))
    (folder / "kaldi.plda").write_text(f"<Plda>  [ {' '.join(['0.25'] * 8)} ]\n [\n{rows} ]\n [ {psi} ]\n</Plda>\n")
    (folder / "exclude.list").write_text("spk50\nspk57\n")


def _make_formats(folder, rng):
    """Write one small list of labelled scores, one matrix and one set of embeddings in every format."""
    enroll, test = [f"m_spk{n}_e" for n in range(4)], [f"s_spk{n}_t{k}" for n in range(4) for k in range(2)]
    scores = rng.normal(size=(4, 8)).round(6)
    keep = rng.random((4, 8)) < 0.75
    rows = [
        (e, t, scores[i, j], speaker_of(e) == speaker_of(t))
        for i, e in enumerate(enroll)
        for j, t in enumerate(test)
        if keep[i, j]
    ]
    words = {True: "target", False: "nontarget"}
    lines = {
        "kaldi.scores": [f"{e} {t} {s}" for e, t, s, _ in rows],
        "kaldi.key": [f"{e} {t} {words[y]}" for e, t, _, y in rows],
        "kaldi.list": [f"{e} {t}" for e, t, _, _ in rows],
        "wespeaker.scores": [f"{e} {t} {s:.5f} {words[y]}" for e, t, s, y in rows],
        "wespeaker_norm.scores": [f"{e} {t} {s:.5f} {words[y]} 1.5 2.25 0.1 -0.2" for e, t, s, y in rows],
        "factors.scores": [f"{e} {t} {words[y]} {s:.5f} 1.5 2.5 1.0 0.6" for e, t, s, y in rows],
        "speechbrain.scores": [f"{e} {t} {y:d} {s}" for e, t, s, y in rows],
        "espnet.scores": [f"{e}*{t} {s} {y:d}" for e, t, s, y in rows],
        "bob.scores": [f"{speaker_of(e)} {speaker_of(t)} {t} {s}" for e, t, s, _ in rows],
        "voxceleb.trials": [f"{y:d} {e}.wav {t}.wav" for e, t, _, y in rows],
        "nist.tsv": ["modelid\tsegmentid\tside\tLLR", *(f"{e}\t{t}\ta\t{s}" for e, t, s, _ in rows)],
        "nist21.tsv": ["modelid\tsegmentid\tLLR", *(f"{e}\t{t}\t{s}" for e, t, s, _ in rows)],
        "nist_key.tsv": ["modelid\tsegmentid\tside\ttargettype", *(f"{e}\t{t}\ta\t{words[y]}" for e, t, _, y in rows)],
        "asvspoof5.tsv": [
            "spk\tfilename\tcm-score\tasv-score\tsasv-score",
            *(f"{e}\t{t}\t0.5\t-\t{s}" for e, t, s, _ in rows),
        ],
        "table.csv": ["enroll,test,score,label,snr", *(f"{e},{t},{s},{words[y]},{10 + s}" for e, t, s, y in rows)],
        "table.tsv": ["enroll\ttest\tscore\tlabel", *(f"{e}\t{t}\t{s}\t{words[y]}" for e, t, s, y in rows)],
        "fmt.utt2spk": [f"{i} {speaker_of(i)}" for i in enroll + test],
        "fmt.spk2utt": [
            f"spk{n} " + " ".join(i for i in enroll + test if speaker_of(i) == f"spk{n}") for n in range(4)
        ],
    }
    for name, content in lines.items():
        (folder / name).write_text("\n".join(content) + "\n")
    (folder / "windows.scores").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines["kaldi.scores"]).encode() + b"\r\n")
    with gzip.open(folder / "packed.scores.gz", "wt") as stream:
        stream.write("\n".join(lines["kaldi.scores"]) + "\n")
    columns = {"enroll": [r[0] for r in rows], "test": [r[1] for r in rows], "score": [r[2] for r in rows]}
    pl.DataFrame(columns | {"label": [words[r[3]] for r in rows]}).write_parquet(folder / "table.parquet")
    index = {"enroll_index": [enroll.index(r[0]) for r in rows], "test_index": [test.index(r[1]) for r in rows]}
    ids = {"enroll_ids": np.array(enroll), "test_ids": np.array(test)}
    numbers = {"scores": np.array(columns["score"]), "labels": np.array([r[3] for r in rows], dtype=np.int8)}
    np.savez(folder / "list.npz", **ids, **{k: np.array(v) for k, v in index.items()}, **numbers)
    gaps = np.where(keep, scores, np.nan)
    np.savez(folder / "matrix.npz", scores=gaps, **ids)
    write_store(folder / "matrix.zarr", gaps, **ids)
    labels = np.array([[1 if speaker_of(e) == speaker_of(t) else -1 for t in test] for e in enroll])
    _write_hdf5(folder, np.where(keep, scores, 0.0), keep, np.where(keep, labels, 0), enroll, test)
    _write_vectors(folder, rng)


def _write_hdf5(folder, scores, keep, key, enroll, test):
    mask, target, nontarget = keep.astype(np.uint8), (key > 0).astype(np.uint8), (key < 0).astype(np.uint8)
    whole = np.ones_like(mask)
    files = {
        "bosaris.h5": ("ID/row_ids", "ID/column_ids", {"scores": scores, "score_mask": mask}),
        "bosaris_key.h5": ("ID/row_ids", "ID/column_ids", {"trial_mask": key.astype(np.int8), "file_format": "2.0"}),
        "bosaris_old_key.h5": ("ID/row_ids", "ID/column_ids", {"target_mask": target, "nontarget_mask": nontarget}),
        "bosaris_ndx.h5": ("ID/row_ids", "ID/column_ids", {"trial_mask": mask}),
        "sidekit.h5": ("modelset", "segset", {"scores": scores, "score_mask": mask}),
        "dca.h5": ("enroll_ids", "test_ids", {"scores": scores}),
        "pybosaris.h5": ("model_names", "test_names", {"score_mat": scores, "score_mask": whole}),
        "pybosaris_key.h5": ("model_names", "test_names", {"tar_mask": target, "non_mask": nontarget}),
    }
    for name, (rows, columns, datasets) in files.items():
        with h5py.File(folder / name, "w") as file:
            file.create_dataset(rows, data=np.array(enroll, dtype="S"))
            file.create_dataset(columns, data=np.array(test, dtype="S"))
            for dataset, values in datasets.items():
                file.create_dataset(dataset, data=values)


def _write_vectors(folder, rng):
    ids = [f"v_spk{n // 2}_{n}" for n in range(6)]
    vectors, speakers = rng.normal(size=(6, 3)).round(6), [speaker_of(i) for i in ids]
    np.savez(folder / "vec.npz", embeddings=vectors, ids=np.array(ids), speakers=np.array(speakers))
    np.savez(folder / "vec_by_id.npz", **dict(zip(ids, vectors, strict=True)))
    np.save(folder / "vec.npy", vectors)
    (folder / "vec.ids").write_text("\n".join(ids) + "\n")
    with h5py.File(folder / "vec.h5", "w") as file:
        file["embeddings"], file["ids"], file["speakers"] = (
            vectors,
            np.array(ids, dtype="S"),
            np.array(speakers, dtype="S"),
        )
    with h5py.File(folder / "vec_by_id.h5", "w") as file:
        for name, vector in zip(ids, vectors, strict=True):
            file[name] = vector
    pl.DataFrame({"id": ids, "speaker": speakers, "embedding": vectors.tolist()}).write_parquet(folder / "vec.parquet")
    texts = (f"{i}  [ {' '.join(map(str, v))} ]\n" for i, v in zip(ids, vectors.tolist(), strict=True))
    (folder / "vec_text.ark").write_text("".join(texts))
    archive, places = b"", []
    for name, vector in zip(ids, vectors, strict=True):
        archive += f"{name} ".encode()
        places.append(f"{name} vec.ark:{len(archive)}\n")
        archive += b"\0BDV \x04" + struct.pack("<i", vector.size) + vector.astype("<f8").tobytes()
    (folder / "vec.ark").write_bytes(archive)
    (folder / "vec.scp").write_text("".join(places))
    write_map(folder / "vec.utt2spk", dict(zip(ids, speakers, strict=True)))


def _make_special_keys(folder, rng):
    """Write trials of three classes, for spoofing, and scores with ties, infinite LLRs and labels unknown."""
    kinds = ["target", "nontarget", "spoof"]
    classes = [kinds[n % 3] for n in range(150)]
    centre = {"target": 2.5, "nontarget": -1.5, "spoof": 0.0}
    scores = [round(float(rng.normal(centre[kind], 1.0)), 6) for kind in classes]
    (folder / "spoof.scores").write_text("".join(f"m{n % 10} u{n} {s}\n" for n, s in enumerate(scores)))
    (folder / "spoof.key").write_text("".join(f"m{n % 10} u{n} {kind}\n" for n, kind in enumerate(classes)))
    ties = [round(float(rng.normal(1.5 * (n % 4 == 0))), 1) for n in range(200)]
    (folder / "ties.scores").write_text("".join(f"m{n % 10} u{n} {s}\n" for n, s in enumerate(ties)))
    (folder / "ties.key").write_text("".join(f"m{n % 10} u{n} {kinds[n % 4 != 0]}\n" for n in range(200)))
    # Classes far apart, and a few targets that behave like non-targets, for saturating calibration
    clear = [round(float(rng.normal(8.0 * (n % 5 == 0 and n % 100 != 0))), 6) for n in range(1000)]
    (folder / "clear.scores").write_text("".join(f"m{n} u{n} {s}\n" for n, s in enumerate(clear)))
    (folder / "clear.key").write_text("".join(f"m{n} u{n} {kinds[n % 5 != 0]}\n" for n in range(1000)))


def _make_broken(folder):
    """Write files that must be refused."""
    good = [f"a{n} b{n} {n}.5" for n in range(6)]
    for name, line in (
        ("bad_line", "a9 b9"),
        ("bad_number", "a9 b9 1.x"),
        ("nan", "a9 b9 nan"),
        ("twice", "a0 b0 7.5"),
    ):
        (folder / f"{name}.scores").write_text("\n".join([*good[:2], line, *good[2:]]) + "\n")
    (folder / "empty.scores").write_text("")
    (folder / "one.scores").write_text("a0 b0 1.5\na1 b0 0.5\n")
    (folder / "one.key").write_text("a0 b0 nontarget\na1 b0 nontarget\n")
    (folder / "other.key").write_text("x y target\nx z nontarget\n")
    (folder / "garbage.bin").write_bytes(bytes(range(256)) * 4)
    (folder / "broken.npz").write_bytes(b"PK\x03\x04" + bytes(60))
    (folder / "broken.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (folder / "broken.json").write_text('{"kind": "score model", "version"')
