"""Real processes, real kills, real limits of the system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from surefoot import Study

from .subjects import problem, subjects

HERE = Path(__file__).parents[2]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=HERE, capture_output=True, text=True, timeout=300)


def test_nothing_is_lost_by_kills() -> None:
    done = python("-m", "tests.study.soak", "20")
    assert done.returncode == 0, done.stderr
    assert "20 kills" in done.stdout


def test_processes_tell_together(url: str) -> None:
    done = python("-m", "tests.study.together", url)
    assert done.returncode == 0, done.stderr
    assert "reads" in done.stdout


def telling(url: str) -> str:
    """A program that tells one reading and prints what the command line would."""
    return (
        "from surefoot.study import Study\nfrom surefoot import SurefootError\n"
        f"study = Study.open({url!r})\n"
        "try:\n    rows = [{'id': a.id, 'effect': 0.1, 'harm': 0.1} for a in study.ask()]\n"
        "    study.tell_many(rows)\n    print('told')\nexcept SurefootError as error:\n    print('error:', error)\n"
    )


def test_a_read_only_file(tmp_path: Path) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        study = Study.create(f"{name}/s.db", "s", problem(), seed=1)
        seq = study.view.seq
        study.journal.engine.dispose()
        os.chmod(f"{name}/s.db", 0o444)
        # everything is imported while it still may be
        drop = (
            "import os\nfrom tests.study.subjects import *\n"
            "run(Study.create('sqlite://', 's', problem()), subjects(problem()))\n"
        )
        drop += "os.getuid() == 0 and os.setuid(65534)\n"  # permissions do not bind root
        done = python("-c", drop + telling(f"{name}/s.db"))
        assert "error: " in done.stdout and "nothing was changed" in done.stdout, done.stdout + done.stderr
        assert Study.open(f"{name}/s.db").view.seq == seq


def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files: what SQLite meets is what it meets on a full disk."""
    study = Study.create(tmp_path / "s.db", "s", problem(sigma=2.0), design="safebai-linear", seed=1)
    seq, size = study.view.seq, len(study.ask())
    assert size > 100
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
    done = python("-c", limit + telling(str(tmp_path / "s.db")))
    assert "error: " in done.stdout and "nothing was changed" in done.stdout, done.stdout + done.stderr
    again = Study.open(tmp_path / "s.db")
    assert again.view.seq == seq and len(again.ask()) == size
    assert again.verify()["ok"]
    again.tell_many(subjects(problem(sigma=2.0)).rows(again.ask()))
    assert again.view.seq > seq + size


def test_the_core_works_without_the_extra() -> None:
    code = (
        "import sys, time\nsys.modules['sqlalchemy'] = None\nimport surefoot\n"
        "from surefoot import *\nfrom surefoot.cli import main\n"
        "try:\n    surefoot.Study\nexcept surefoot.SurefootError as error:\n    print(error)\n"
        "main(['study', 'ask'])\n"
    )
    done = python("-c", code)
    assert "pip install 'surefoot[study]'" in done.stdout
    assert done.returncode == 2 and "pip install 'surefoot[study]'" in done.stderr


def test_importing_surefoot_does_not_import_the_extra() -> None:
    done = python("-c", "import sys, surefoot, surefoot.cli; print('sqlalchemy' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr
