from __future__ import annotations

import pytest

from router.simulation.profiles import BadProfiles, read_profiles

HEAD = "profile,cell,arm,mode,thinking,concurrency,tok_s,unit,measurement_id\n"


def read(tmp_path, *lines: str):
    path = tmp_path / "cells.csv"
    path.write_text(HEAD + "\n".join(lines) + "\n")
    return read_profiles(path)


def test_cells_and_the_arms_common_to_them(tmp_path):
    (profile,) = read(
        tmp_path,
        "P,code,a,mtp,on,1,40,per_request,1",
        "P,code,b,luce_chain,on,1,50,per_request,2",
        "P,code,c,ar,on,1,20,per_request,3",
        "P,prose,a,mtp,on,1,30,per_request,4",
        "P,prose,b,luce_chain,on,1,25,per_request,5",
    )
    assert [cell.name for cell in profile.cells] == ["code", "prose"]
    assert profile.common == ("a", "b")
    assert profile.modes == {"a": "mtp", "b": "luce-chain", "c": "ar"}
    assert profile.usable


def test_aggregate_speeds_are_shared_out_and_repeats_averaged(tmp_path):
    (profile,) = read(
        tmp_path,
        "P,c4,a,mtp,,4,80,aggregate,1",
        "P,c4,a,mtp,,4,120,aggregate,2",
        "P,c1,a,mtp,,,40,per_request,3",
    )
    assert profile.cells[0].speeds == {"a": 25.0}
    assert [cell.concurrency for cell in profile.cells] == [4, 1]
    assert not profile.usable


@pytest.mark.parametrize(
    ("arm", "mode", "seen"),
    [
        ("mtp n4", "mtp", "mtp-n4"),
        ("ik mtp n2", "mtp", "mtp-n2"),
        ("mtp k3", "mtp", "mtp-n3"),
        ("mtp n4 p0.6", "mtp", "mtp-n4"),
        ("mtp n4 p.75", "mtp", "mtp-n4"),
        ("ADAPTIVE mtp n7 margin.3", "mtp", "mtp"),
        ("mtp", "mtp", "mtp"),
        ("dflash2 n7", "dflash2", "dflash2"),
    ],
)
def test_an_arms_label_may_state_its_draft_length(tmp_path, arm, mode, seen):
    (profile,) = read(tmp_path, f"P,code,{arm},{mode},on,1,40,per_request,1")
    assert profile.modes == {arm: seen}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("P,code,a,mtp,on,1,fast,per_request,1", "line 2"),
        ("P,code,a,mtp,on,1,-3,per_request,1", "must be positive"),
        ("P,code,a,mtp,on,1,nan,per_request,1", "must be positive"),
        ("P,code,a,mtp,on,1,inf,per_request,1", "must be positive"),
        ("P,code,a,mtp,on,inf,40,per_request,1", "line 2"),
        ("P,code,a,mtp", "line 2"),
        ("P,code," + "a" * 200_000, "no CSV file"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, told):
    with pytest.raises(BadProfiles, match=told):
        read(tmp_path, line)


def test_a_file_in_another_coding_is_refused(tmp_path):
    path = tmp_path / "profiles.csv"
    path.write_text("profile,cell,arm,mode,concurrency,tok_s,unit\n", encoding="utf-16")
    with pytest.raises(BadProfiles, match="no CSV file in UTF-8"):
        read_profiles(path)


def test_a_file_without_the_columns_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadProfiles, match="no column profile, cell"):
        read_profiles(path)
