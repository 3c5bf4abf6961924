"""make dist: wheel and sdist, their metadata checked, each installed into a clean environment of every Python at hand
and tried: the core alone first, then with what the demo needs. Needs an index of packages for the dependencies."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SMOKE = """
import sys, time
began = time.perf_counter()
import surefoot
took = time.perf_counter() - began
problem, truth = surefoot.case("paper-linear", 3)
result = surefoot.simulate(problem, truth, surefoot.make("surefoot-linear"), 5, seed=1, progress=False)
assert not result.wrong.any() and not result.unsafe.any()
try:
    surefoot.Study
    extra = "with studies"
except surefoot.SurefootError as error:
    assert "pip install 'surefoot[study]'" in str(error), error
    extra = "without studies, which says what to install"
print(f"Python {sys.version.split()[0]}: surefoot {surefoot.__version__}, {extra}; imported in {took:.2f} s")
"""


def run(*command: object, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def pythons() -> list[str]:
    """Those at hand, by their version; under pyenv those that are installed."""
    found = []
    for version in PYTHONS:
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        where = shutil.which(f"python{version}") if not pyenv else str(pyenv[-1])
        if where and subprocess.run([where, "--version"], capture_output=True).returncode == 0:
            found.append(where)
    return found


def tried(python: str, package: Path, extras: str) -> str:
    """The package in an environment of its own, seen from a folder that is not the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run(python, "-m", "venv", home / "env")
        mine = home / "env" / "bin" / "python"
        limits = ("--constraint", ROOT / "constraints.txt")
        run(mine, "-m", "pip", "install", "--quiet", *limits, f"{package}{extras}")
        run(home / "env" / "bin" / "surefoot", "simulate", "paper-linear", "--trials", "2", "--json", cwd=home)
        return run(mine, "-c", SMOKE, cwd=home)


def main() -> None:
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist")
    packages = sorted((ROOT / "dist").iterdir())
    print(run(sys.executable, "-m", "twine", "check", "--strict", *packages))
    wheel = next(path for path in packages if path.suffix == ".whl")
    names = run(sys.executable, "-m", "zipfile", "-l", wheel)
    for needed in ("LICENSE", "surefoot/py.typed"):
        if needed not in names:
            sys.exit(f"the wheel lacks {needed}")
    for python in pythons():
        for package in packages if python == pythons()[0] else [wheel]:
            for extras in ("", "[plots,study]"):
                print(f"{package.name}{extras}: {tried(python, package, extras)}", flush=True)


if __name__ == "__main__":
    main()
