"""What is free is told by the system, and by the container where there is one."""

import math

import pytest

from evenscore import InputError, read
from evenscore.memory import free_memory, memory_size, refuse_too_large


def test_no_more_is_free_than_there_is():
    assert 0 < free_memory() <= memory_size() < math.inf


@pytest.mark.parametrize(
    ("limit", "used", "free"), [("1000000", "400000", 600_000), ("1000", "2000", 0), ("max", "5", None)]
)
def test_a_container_has_less(limit, used, free, tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text(limit + "\n")
    (tmp_path / "memory.current").write_text(used + "\n")
    monkeypatch.setattr("evenscore.memory._GROUP", tmp_path)
    if free is None:
        assert memory_size() > 10**8
    else:
        assert memory_size() == float(limit)
        assert free_memory() <= max(free, float(limit))


def test_the_message_has_figures(monkeypatch):
    monkeypatch.setattr("evenscore.memory.free_memory", lambda: 2.5e9)
    refuse_too_large(2.4e9, "it", "go")
    with pytest.raises(InputError, match=r"^it takes 3\.0 GB, but only 2\.5 GB of memory are free; go$"):
        refuse_too_large(3e9, "it", "go")


def test_a_text_that_grows_beyond_memory_is_refused_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "large.scores"
    path.write_text("".join(f"e{n} t 1\n" for n in range(2000)))
    read(path)
    monkeypatch.setattr("evenscore.memory.free_memory", lambda: 4000)
    monkeypatch.setattr("evenscore.memory._NOT_WORTH_A_LOOK", 0)
    from evenscore.files.registry import ReadOptions
    from evenscore.files.text.read import read_trials_text

    with pytest.raises(Exception, match="GB of memory are free"):
        read_trials_text(path, ReadOptions(), "kaldi", chunk_size=1 << 12)
