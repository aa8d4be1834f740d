import json

from evenscore.files import FORMATS


def test_json_has_every_format(cli):
    result = cli("formats", "--json")
    assert result.exit_code == 0
    listed = json.loads(result.stdout)
    assert [format["name"] for format in listed] == list(FORMATS)
    kaldi = next(format for format in listed if format["name"] == "kaldi")
    assert kaldi["kinds"] == ["scores", "trials"]
    assert kaldi["read"] is True
    assert kaldi["write"] is True


def test_people_get_a_table(cli):
    out = cli("formats").stdout
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(FORMATS) <= lines.keys()
    assert "read write" in lines["kaldi"]
    assert "write" not in lines["sidekit"].replace("read", "").split("SIDEKIT")[0]
