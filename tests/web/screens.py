"""Every page as a picture: `python -m tests.web.screens FOLDER [PAGE...]`, at three widths, light and dark.

`python -m tests.web.screens docs pictures` makes the three of the documents.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from surefoot import Study
from surefoot.study import simulated
from surefoot.web.demo import PROBLEM, TRUTH

from .browser import chromium
from .server import ARABIC, NAMES, PASSWORD, Server, play, serving

WIDTHS = (1440, 1024, 390)


def studies(db: Path) -> None:
    running = play(db, "headache", "paper-drug", 3, most=14, changes={"slack": 0.5})
    running.tell(running.ask(1)[0].id, harm=0.1)
    play(db, "creams", "paper-linear", 4)
    paused = play(db, "ramp-up", "paper-linear", 3, most=3)
    paused.pause("the pharmacist doubts the label of batch 7", actor="ann")
    play(db, "hundred", "hundred-arms", 100, most=2)
    play(db, "levels", "levels-thall", most=12)
    for name in NAMES:
        play(db, name, "paper-linear", 3, most=4, names=NAMES)


def pages() -> dict[str, str]:
    part, arabic = "/study/headache", f"/study/{ARABIC}"
    return {
        "studies": "/", "board": part, "ended": "/study/creams", "paused": "/study/ramp-up", "levels": "/study/levels",
        "hundred": "/study/hundred", "arabic": arabic, "arabic-enter": f"{arabic}/enter",
        "arabic-journal": f"{arabic}/journal", "arabic-change": f"{arabic}/change", "enter": f"{part}/enter",
        "change": f"{part}/change", "journal": f"{part}/journal", "access": "/access", "lab": "/lab",
        "docs": "/api/docs",
    }  # fmt: skip


def log_in(server: Server, context: Any, name: str = "ann", role: str = "admin") -> Any:
    server.person(name, role)
    page = context.new_page()
    page.goto(server.url + "/login")
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("button.main")
    page.wait_for_url(server.url + "/")
    return page


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        db = Path(home) / "studies.db"
        studies(db)
        with serving(db) as server:
            for dark in (False, True):
                for width in WIDTHS:
                    context = browser.new_context(
                        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light",
                        device_scale_factor=1,
                    )  # fmt: skip
                    page = log_in(server, context)
                    for name, path in pages().items():
                        if wanted and name not in wanted:
                            continue
                        page.goto(server.url + path)
                        page.wait_for_timeout(150)
                        file = folder / f"{name}-{width}{'-dark' if dark else ''}.png"
                        page.screenshot(path=file, full_page=True)
                        wide = page.evaluate("document.documentElement.scrollWidth")
                        if wide > width:
                            print(f"{file.name}: {wide} pixels wide")
                    context.close()


def pictures(folder: Path) -> None:
    """The three of the documents: a board, where readings are entered, the lab."""
    with tempfile.TemporaryDirectory() as home, chromium() as browser:
        study = Study.create(Path(home) / "x.db", "creams", PROBLEM, actor="clinic 1", seed=8)
        for _ in range(24):
            study.tell_many(simulated(PROBLEM, TRUTH, study.ask(), 5))
        fresh = Study.create(Path(home) / "x.db", "creams, spring", PROBLEM, actor="clinic 1", seed=9)
        fresh.tell(fresh.ask(1)[0].id, harm=0.2)
        with serving(Path(home) / "x.db") as server:
            view = {"width": 1280, "height": 800}
            page = log_in(server, browser.new_context(viewport=view, device_scale_factor=1.5), "ann", "statistician")
            for name, path in (("board", "/study/creams"), ("enter", "/study/creams, spring/enter"), ("lab", "/lab")):
                page.goto(server.url + path)
                page.wait_for_timeout(300)
                page.screenshot(path=folder / f"page-{name}.png")


if __name__ == "__main__":
    pictures(Path(sys.argv[1])) if sys.argv[2:] == ["pictures"] else main(Path(sys.argv[1]), sys.argv[2:])
