"""Cases of `normalize`: classical norms and their options, own speakers, conditions, gaps, stores, embeddings."""

from case_run import Case

S, E, T, C = (
    "--trials trials.scores",
    "--enroll-cohort enroll.scores",
    "--test-cohort test.scores",
    "--cohort cohort.scores",
)
BOTH = f"{S} {E} {T}"
FOUR = f"{BOTH} {C} --cohort-key cohort.key"
GAPS = "--trials trials_gaps.scores --enroll-cohort enroll_gaps.scores --test-cohort test_gaps.scores"
GAPS_FOUR = f"{GAPS} --cohort cohort_gaps.scores --cohort-key cohort_gaps.key"
OWN = (
    "--trials own_trials.scores --enroll-cohort own_enroll.scores --test-cohort own_test.scores"
    " --cohort own_cohort.scores --speakers own.utt2spk --cohort-speakers own_cohort.utt2spk"
)
KNOWN = f"{BOTH} --speakers utt2spk --cohort-speakers cohort.utt2spk"
ARCHIVES = "--trials trials.npz --enroll-cohort enroll.npz --test-cohort test.npz"
STORES = "--trials trials.zarr --enroll-cohort enroll.zarr --test-cohort test.zarr"
VECTORS = "--enroll-embeddings xenroll.npz --test-embeddings xtest.npz --cohort-embeddings xcohort.npz"


def normalize(name, norm, rest, out="out.scores"):
    """Make a case of one normalize command."""
    return Case(name=f"normalize/{name}", commands=(f"normalize --norm {norm} {rest} -o {out}",), files=(out,))


NORMS = {
    "z": f"{S} {E}",
    "t": f"{S} {T}",
    "s": BOTH,
    "zt": FOUR,
    "tz": FOUR,
    "as": BOTH,
    "at": f"{S} {T}",
    "az": f"{S} {E}",
}
ADAPTIVE = ("as", "at", "az")
CASES = [
    *(normalize(norm, f"{norm}:top_k=10" if norm in ADAPTIVE else norm, rest) for norm, rest in NORMS.items()),
    # Options of norms
    normalize("as-default-top-k", "as", BOTH),
    normalize("as-top-k-fraction", "as:top_k=0.25", BOTH),
    normalize("as-drop-top", "as:top_k=8:drop_top=2", BOTH),
    normalize("as-clip", "as:top_k=500:excess=clip", BOTH),
    normalize("as-cross", "as:top_k=8:select=cross", KNOWN),
    normalize("at-cross", "at:top_k=8:select=cross", KNOWN),
    normalize("as-profile", "as:top_k=8:select=profile", FOUR),
    normalize("at-profile", "at:top_k=8:select=profile:drop_top=1", FOUR),
    normalize("as-median", "as:top_k=11:statistic=median", BOTH),
    normalize("s-median", "s:statistic=median", BOTH),
    normalize("s-trimmed", "s:statistic=trimmed:trim=0.2", BOTH),
    normalize("zt-trimmed", "zt:statistic=trimmed", FOUR),
    normalize("s-ddof", "s:ddof=1", BOTH),
    normalize("s-sqrt2", "s:combine=sqrt2", BOTH),
    normalize("s-std-floor", "s:std_floor=1.1", BOTH),
    normalize("z-drop-top", "z:drop_top=3", f"{S} {E}"),
    *(
        normalize(f"as-{tool}", f"as:top_k=10:convention={tool}", BOTH)
        for tool in ("wespeaker", "speechbrain", "espnet", "asv-subtools")
    ),
    normalize("as-hyperion", "as:top_k=10:convention=hyperion", KNOWN),
    normalize("zt-bob", "zt:convention=bob", FOUR),
    normalize("s-hyperion-ddof", "s:convention=hyperion:ddof=1", BOTH),
    # Missing pairs, lists
    *(normalize(f"gaps-{norm}", norm, GAPS) for norm in ("z", "t", "s", "as:top_k=6")),
    *(normalize(f"gaps-{norm}", norm, GAPS_FOUR) for norm in ("zt", "tz")),
    normalize("gaps-trials-only", "s", f"--trials trials_gaps.scores {E} {T}", "out.csv"),
    # Own speakers left out of the cohort
    *(normalize(f"own-{norm}", norm, OWN) for norm in ("z", "t", "s", "zt", "tz", "as:top_k=5")),
    normalize("own-median", "s:statistic=median", OWN),
    normalize("own-cross", "as:top_k=5:select=cross", OWN),
    # Same condition
    *(normalize(f"conditions-{norm}", norm, f"{OWN} --conditions own.gender") for norm in ("z", "s", "as:top_k=4")),
    # Matrices, stores
    normalize("npz", "s", ARCHIVES, "out.npz"),
    normalize("npz-zt", "zt", f"{ARCHIVES} --cohort cohort.npz --cohort-key cohort.key", "out.npz"),
    normalize("zarr", "s", STORES, "out.zarr"),
    normalize("zarr-as", "as:top_k=10", STORES, "out.zarr"),
    normalize("zarr-to-npz", "zt", f"{STORES} --cohort cohort.zarr --cohort-key cohort.key", "out.npz"),
    normalize("to-csv", "s", BOTH, "out.csv"),
    normalize("to-parquet", "s", BOTH, "out.parquet"),
    normalize("to-hdf5", "s", BOTH, "out.h5"),
    # From embeddings
    normalize("embeddings-as", "as:top_k=12", f"{VECTORS} --trials x.trials"),
    normalize("embeddings-all-pairs", "s", VECTORS, "out.npz"),
    normalize("embeddings-zt", "zt", f"{VECTORS} --trials x.trials"),
    normalize("embeddings-dot", "s", f"{VECTORS} --trials x.trials --scorer dot"),
    normalize("embeddings-center", "as:top_k=12", f"{VECTORS} --trials x.trials --scorer cosine:center=xcohort.npz"),
    normalize("embeddings-speaker-means", "as:top_k=10", f"{VECTORS} --trials x.trials --cohort-unit speaker"),
    normalize("embeddings-length-norm", "s", f"{VECTORS} --trials x.trials --cohort-unit speaker:length_norm=before"),
    normalize("embeddings-exclude", "s", f"{VECTORS} --trials x.trials --exclude-speakers exclude.list"),
    normalize("embeddings-condition", "s", f"{VECTORS} --trials x.trials --conditions column:gender"),
    normalize("embeddings-models", "s", f"{VECTORS} --trials x.models.trials --enroll-map x.models"),
    normalize("embeddings-quality", "as:top_k=10", f"{VECTORS} --trials x.trials --quality mag,mu --to wespeaker"),
    normalize("embeddings-own", "s", f"{VECTORS.replace('xcohort', 'xeval')} --trials x.trials"),
    normalize("embeddings-own-as", "as:top_k=9", f"{VECTORS.replace('xcohort', 'xeval')} --trials x.trials"),
]
