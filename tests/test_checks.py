from __future__ import annotations

import os
from pathlib import Path

import pytest

from surefoot.checks import SurefootError, markdown_table, write


def test_a_file_is_written_whole_where_its_name_leads(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(file)
    for text in ("one", "two"):
        write(link, text)
    assert file.read_text() == "two" and link.is_symlink() and len(list(tmp_path.iterdir())) == 2
    write(Path(os.devnull), b"nothing")
    assert Path(os.devnull).exists() and not Path(os.devnull).is_file()
    for path, why in ((tmp_path, "directory"), (tmp_path / "no" / "file", "No such file"), (Path("a\0b"), "null")):
        with pytest.raises(SurefootError, match=f"cannot write .*{why}.*; try again"):
            write(path, "x", "; try again")
    assert len(list(tmp_path.iterdir())) == 2


def test_cells_of_a_markdown_table_are_kept_apart() -> None:
    assert markdown_table([["a", "b"], ["1|2", ""]]).splitlines() == ["| a | b |", "| --- | --- |", "| 1\\|2 |  |"]
