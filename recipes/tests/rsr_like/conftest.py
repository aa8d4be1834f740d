import pytest

pytest.importorskip("soundfile", reason="speech needs the extra evenscore[speech]")
pytest.importorskip("kaldi_native_fbank", reason="speech needs the extra evenscore[speech]")


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """RSR2015 part I in small: four speakers of each gender and set, two short phrases, all nine sessions."""
    from recipes.rsr_like.synthesizer import Synthesizer
    from recipes.rsr_like.tree import TreeOptions, make_tree

    root = tmp_path_factory.mktemp("RSR2015_V1")
    make_tree(root, Synthesizer(seconds=0.5), TreeOptions(phrases=2))
    return root
