import gzip
import json

import pytest

from classifier.classes import WorkloadClass
from classifier.dataset import BadRow, read

ROW = {
    "id": "a1",
    "group": "g",
    "language": "en",
    "messages": [{"role": "user", "content": "hi"}],
    "reasoning_effort": "high",
    "label": "reasoning",
    "sublabel": "reasoning",
    "answer_label": "prose",
    "answer_sublabel": "summarization",
    "ambiguous": True,
}


def write(path, *rows):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_reads_plain_and_packed_files(tmp_path, name):
    (row,) = read(write(tmp_path / name, ROW))
    assert (row.label, row.answer) == (WorkloadClass.REASONING, WorkloadClass.PROSE)
    assert (row.kind, row.group, row.ambiguous) == ("summary", "g", True)
    assert set(row.body) == {"messages", "reasoning_effort"}


def test_a_kind_of_another_class_is_not_kept(tmp_path):
    row = {"messages": [], "label": "prose", "sublabel": "code"}
    assert read(write(tmp_path / "r.jsonl", row))[0].kind == ""


@pytest.mark.parametrize("row", [{"label": "poetry"}, {}, [1], 7, {**ROW, "answer_sublabel": [1]}])
def test_names_file_and_line_of_a_bad_row(tmp_path, row):
    path = write(tmp_path / "r.jsonl", ROW, row)
    with pytest.raises(BadRow, match=r"r\.jsonl:2"):
        read(path)


def test_a_line_nested_too_deeply_is_a_bad_row(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(BadRow, match=r"r\.jsonl:1"):
        read(path)
