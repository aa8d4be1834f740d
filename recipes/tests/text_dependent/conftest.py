import pytest

pytest.importorskip("soundfile", reason="speech needs the extra evenscore[speech]")
pytest.importorskip("kaldi_native_fbank", reason="speech needs the extra evenscore[speech]")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    from recipes.tests.synthetic_speech import make_corpus

    return make_corpus(tmp_path_factory.mktemp("speech"))
