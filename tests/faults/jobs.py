"""The commands that faults are tried on, and the tiny files that they read.

Every option that names a file to write occurs in a job, and every function that writes a format
(`test_campaign.py` holds us to it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

CHUNKS = "--memory-limit 1GB"
BLOCKS = "--trials trials.{0} --enroll-cohort enroll.{0} --test-cohort test.{0}"
NORMALIZE = f"normalize --norm s {BLOCKS.format('zarr')} {CHUNKS} -o"
SCORE = "score --enroll-embeddings enroll-x.npz --test-embeddings test-x.npz"
TRAINED = "calibrate trials.npz --train cohort.npz --train-key cohort.key"


@dataclass(frozen=True)
class Job:
    """A command whose output goes below ``out``, and perhaps one that has written something else there before."""

    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()
    resume: bool = False
    every: int = 1  #: only every so many-th call, where a run takes long

    @classmethod
    def of(cls, line: str, before: str = "", *, resume: bool = False, every: int = 1) -> Job:
        return cls(tuple(line.split()), tuple(before.split()), resume, every)


def comparing(ending: str, *more: str) -> str:
    sides = f"--train cohort.{ending} {BLOCKS.format(ending)} --speakers utt2spk"
    return " ".join(["compare", sides, "--methods s --bootstrap 5 --calibration gaussian -o out/cmp", *more])


def over(line: str, source: str, other: str) -> Job:
    """Return a job that replaces what the same command has made of other data."""
    return Job.of(line.format(source), line.format(other))


JOBS = {
    "fit": Job.of("fit --scores cohort.npz --enroll-speakers utt2spk --max-iter 3 --starts 1 -o out/m.json"),
    "fit from hdf5": Job.of("fit --norm evidence --scores cohort.h5 --key cohort.key -o out/e.json"),
    "adapt": Job.of("adapt --model m.json --scores apart.npz --prior 0.2 --max-iter 3 -o out/m.json"),
    "plda": Job.of("plda train-x.npz --training moments -o out/p.json"),
    "transform": Job.of("transform train-x.npz -o out/t.json", "plda train-x.npz --training moments -o out/t.json"),
    "verifier": Job.of("verifier --norm s --cohort-embeddings train-x.npz --calibration c.json -o out/v.npz"),
    "plot to svg": Job.of("plot det trials.npz --key trials.key -o out/det.svg"),
    "plot to png": Job.of("plot hist trials.npz --key trials.key -o out/hist.png"),
    "choose-cohort": Job.of(
        "choose-cohort --train cohort.npz --train-speakers utt2spk --norm s:std_floor=0.1 --sizes 2,all --folds 3 "
        "--bootstrap 10 --plot out/sizes.svg"
    ),
    "simulate": Job.of("simulate --speakers 3 --cohort-speakers 2 -o out/sim"),
    "simulate again": Job.of("simulate --speakers 3 -o out/sim", "simulate --speakers 3 --seed 1 -o out/sim"),
    "simulate a file": Job.of("simulate --speakers 3 -o out/one.csv"),
    "convert to npz": over("convert {0}.npz out/o.npz", "trials", "cohort"),
    "convert to text": over("convert {0}.npz out/o.csv.gz", "trials", "cohort"),
    "convert to map": Job.of("convert utt2spk out/o --to spk2utt"),
    "convert to hdf5": over("convert {0}.npz out/o.h5", "trials", "cohort"),
    "convert to old key": Job.of("convert trials.key out/o.h5 --to bosaris-old-key"),
    "convert from hdf5": Job.of("convert cohort.h5 out/o.scores"),
    "convert to parquet": over("convert {0}.npz out/o.parquet", "trials", "cohort"),
    "convert to zarr": Job.of("convert trials.npz out/o.zarr"),
    "convert over zarr": over("convert {0}.npz out/o.zarr", "trials", "cohort"),
    "vectors to npy": over("convert {0}-x.npz out/o.npy", "enroll", "train"),
    "vectors to ark": over("convert {0}-x.npz out/o.ark", "enroll", "train"),
    "vectors to text": Job.of("convert enroll-x.npz out/o.ark --to kaldi-ark-text"),
    "vectors to scp": over("convert {0}-x.npz out/o.scp", "enroll", "train"),
    "vectors to hdf5": Job.of("convert enroll-x.npz out/o.h5"),
    "score to text": Job.of(f"{SCORE} -o out/raw"),
    "score to zarr": Job.of(f"{SCORE} {CHUNKS} -o out/o.zarr", resume=True),
    "normalize to text": Job.of(f"normalize --norm s {BLOCKS.format('npz')} --quality-out out/q.csv -o out/o.scores"),
    "normalize to zarr": Job.of(f"{NORMALIZE} out/o.zarr --quality-out out/q.csv", resume=True),
    "normalize over zarr": Job.of(f"{NORMALIZE} out/o.zarr", "convert cohort.npz out/o.zarr", resume=True),
    "normalize to parquet": Job.of(f"{NORMALIZE} out/o.parquet", resume=True),
    "normalize over parquet": Job.of(f"{NORMALIZE} out/o.parquet", "convert cohort.npz out/o.parquet", resume=True),
    "calibrate to text": Job.of(f"{TRAINED} --save out/c.json -o out/o.scores"),
    "calibrate to zarr": Job.of(f"calibrate trials.zarr --load c.json {CHUNKS} -o out/o.zarr", resume=True),
    "calibrate to parquet": Job.of(f"calibrate trials.zarr --load c.json {CHUNKS} -o out/o.parquet", resume=True),
    "demo": Job.of("demo --methods s --bootstrap 2 -o out/demo", every=100),
    "compare": Job.of(comparing("npz")),
    "compare in chunks": Job.of(comparing("zarr", CHUNKS)),
    "compare over another": Job.of(comparing("npz"), comparing("npz", "--calibration pav")),
    "compare in chunks over another": Job.of(
        comparing("zarr", CHUNKS), comparing("zarr", CHUNKS, "--calibration pav --no-scores"), every=8
    ),
}


def make_inputs(folder: Path) -> None:
    """Write tiny scores and embeddings, in one block and in small chunks."""
    import numpy as np

    from evenscore import Embeddings, ScoreModel, TrialList, simulate_blocks, write
    from evenscore.calibrate import LogisticCalibration
    from evenscore.files import write_table
    from evenscore.files.models import save_calibration, save_model

    model = ScoreModel(mu=[-2.0, 2.0], alpha=[[0.9], [0.7]], beta=[[0.8], [0.6]], sigma2=[1.0, 1.5])
    who = [[f"{group}{n // each}" for n in range(6 * each)] for group in ("new", "dev") for each in (1, 2)]
    blocks, _ = simulate_blocks(model, *who, seed=3)
    for name in ("trials", "enroll", "test", "cohort"):
        table = getattr(blocks, name)
        write(table, folder / f"{name}.npz")
        write_table(table.in_tiles(100.0, (3, 6)), folder / f"{name}.zarr")
    write(blocks.cohort, folder / "cohort.h5")
    apart, _ = simulate_blocks(replace(model, mu=np.array([-9.0, 9.0])), *who, seed=4)
    write(apart.cohort, folder / "apart.npz")
    speakers: dict[str, str] = {}
    for name, table, names in (("trials", blocks.trials, who[:2]), ("cohort", blocks.cohort, who[2:])):
        for ids, spoken in zip((table.enroll_ids, table.test_ids), names, strict=True):
            speakers |= dict(zip(ids, spoken, strict=True))
        pairs = [(enroll, test) for enroll in table.enroll_ids for test in table.test_ids]
        labels = [int(speakers[enroll] == speakers[test]) for enroll, test in pairs]
        write(TrialList.from_pairs(*zip(*pairs, strict=True), labels=labels), folder / f"{name}.key", format="kaldi")
    write(speakers, folder / "utt2spk", format="utt2spk")
    random = np.random.default_rng(0)
    for side, ids in (("enroll", blocks.trials.enroll_ids), ("test", blocks.trials.test_ids)):
        write(Embeddings(ids, random.normal(size=(len(ids), 4))), folder / f"{side}-x.npz")
    said = [f"train{n}" for n in range(24)]
    spoken = [f"speaker{n // 4}" for n in range(24)]
    write(Embeddings(said, random.normal(size=(24, 4)), speakers=spoken), folder / "train-x.npz")
    save_calibration(LogisticCalibration(weights=[2.0], quality_weights=[], offset=0.5), folder / "c.json")
    save_model(model, folder / "m.json")
