"""The demo: the main job on what comes with the package."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_norms_help_on_real_and_on_simulated_scores_and_the_story_is_told(cli, tmp_path):
    quick = ("demo", "--methods", "raw,s,lgsm,lgsm:dim=0", "--bootstrap", "20")
    result = cli(*quick, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    for name, (method, gain) in {"audiomnist": ("s", 0.8), "simulated": ("lgsm", 0.6)}.items():
        figures = {each: what["figures"] for each, what in found[name]["methods"].items()}
        assert figures[method]["eer"] < gain * figures["raw"]["eer"]
        assert figures[method]["cllr"] < gain * figures["raw"]["cllr"]
        assert Path("evenscore-demo", name, "report.html").stat().st_size > 100_000
        saved = json.loads(Path("evenscore-demo", name, "results.json").read_text(encoding="utf-8"))
        assert saved["methods"].keys() == figures.keys()
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    for method in ("raw", "s", "lgsm", "lgsm:dim=0"):
        shown = found["audiomnist"]["methods"][method]["figures"]
        assert f"| {method} | {100 * shown['eer']:.2f} | {shown['min_dcf']:.3f} |" in readme
    told = cli(*quick)  # the finished methods are not done again
    assert "Use s: Cllr" in told.stdout
    assert "Report: evenscore-demo/audiomnist/report.html" in told.stdout.replace("\\", "/")


def test_the_seed_decides_the_simulated_scores_only(cli, tmp_path):
    quick = ("demo", "--methods", "raw", "--bootstrap", "20", "--json")
    first, other = (json.loads(cli(*quick, "-o", seed, "--seed", seed).stdout) for seed in ("7", "8"))
    assert first["audiomnist"]["methods"]["raw"]["figures"] == other["audiomnist"]["methods"]["raw"]["figures"]
    assert first["simulated"]["methods"]["raw"]["figures"] != other["simulated"]["methods"]["raw"]["figures"]


def test_the_demo_needs_no_package_of_the_extras(tmp_path):
    extras = ("matplotlib", "zarr", "dask", "distributed", "bokeh", "networkx", "soundfile", "kaldi_native_fbank")
    hidden = dict.fromkeys((*extras, "jaxtyping", "pandas", "pyarrow"))  # as if they were not installed
    code = f"import sys; sys.modules.update({hidden}); from evenscore.cli.app import main; main()"
    command = [sys.executable, "-c", code, "demo", "--methods", "raw,s", "--bootstrap", "20"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert len(list(tmp_path.glob("evenscore-demo/*/report.html"))) == 2


@pytest.mark.parametrize("options", [("-o", "file"), ("--methods", "nonsense"), ("--methods", ",")])
def test_bad_requests_are_refused(cli, tmp_path, options):
    Path("file").write_text("in the way")
    result = cli("demo", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
