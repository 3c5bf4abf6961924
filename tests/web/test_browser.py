"""The page in a real Chromium: from the first start to the certificate by clicking, in each role, with accidents."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot import Study, make
from surefoot.web.demo import NAME, Arrivals, begin
from surefoot.web.lab_work import START

from .browser import axe
from .screens import log_in
from .server import ARABIC, NAMES, PASSWORD, Server, bound, long_study, play, serving

pytestmark = pytest.mark.usefixtures("jobs")
EASY = START.replace("sigma = 0.3", "sigma = 0.02").replace("start = 0.2", "start = 0.5").replace("cream B", "كريم ب")


class Watch:
    """Opens pages, and remembers what they said and where they asked."""

    def __init__(self, browser: Any):
        self.browser, self.said, self.asked, self.contexts = browser, list[str](), list[str](), list[Any]()
        self.allowed: list[str] = []  # messages of the console that a test provokes

    def context(self, **options: Any) -> Any:
        context = self.browser.new_context(**options)
        context.set_default_timeout(90_000)  # a child process may be slow on a busy machine
        context.on("console", lambda m: self.said.append(m.text))
        context.on("weberror", lambda e: self.said.append(str(e.error)))
        context.on("request", lambda r: self.asked.append(r.url))
        self.contexts.append(context)
        return context

    def check(self) -> None:
        assert not [s for s in self.said if not any(word in s for word in self.allowed)]
        assert not [url for url in self.asked if not re.match(r"(http://127\.0\.0\.1:\d+/|blob:|data:)", url)]


@pytest.fixture
def watch(browser: Any) -> Iterator[Watch]:
    it = Watch(browser)
    yield it
    for context in it.contexts:
        context.close()
    it.check()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    db = tmp_path_factory.mktemp("many") / "many.db"
    enough = make("surefoot-linear", cohort=8)  # for all who take some
    play(db, "running", "paper-linear", 3, most=6, changes={"budget": 300}, design=enough)
    play(db, "levels", "levels-thall", 3, most=3)
    play(db, "ended", "paper-linear", 3, changes={"budget": 40})
    play(db, "hundred", "hundred-arms", 100, most=1)
    play(db, "paused", "paper-drug", 3, most=2, changes={"slack": 0.5}).pause("a doubt", actor="ann")
    play(db, ARABIC, "paper-linear", 3, most=4, names=NAMES)
    with serving(db) as server:
        yield server


def until(page: Any, condition: str) -> None:
    """Asked from outside: the page's own policy lets nobody evaluate text in it again and again."""
    patience = time.monotonic() + 30
    while not page.evaluate(condition):
        assert time.monotonic() < patience, condition
        page.wait_for_timeout(50)


def late(route: Any) -> None:
    """So that somebody has typed before a page's scripts are there."""
    time.sleep(1)
    route.continue_()


def typed(page: Any, rows: list[list[Any]]) -> None:
    """Type readings into rows of the worklist, one after another."""
    for id, effect, harm in rows:
        form = page.locator(f"#row-{id} form")
        form.locator("[name=harm]").fill(f"{harm:.4f}")
        form.locator("[name=effect]").fill(f"{effect:.4f}")
        form.locator("button", has_text="Tell").click()
        page.wait_for_selector(f"#row-{id}.done")


def test_from_the_first_start_to_the_certificate(watch: Watch, tmp_path: Path) -> None:
    """By clicking and typing alone, as the page on the tutorial tells it."""
    with serving(tmp_path / "new.db") as server:
        page = watch.context().new_page()
        page.goto(server.url)
        assert page.url.endswith("/login?next=/")
        page.goto(f"{server.url}/first#{server.site.access.link(None, 'start')}")
        page.fill("[name=name]", "ann")
        page.fill("[name=password]", PASSWORD)
        page.fill("[name=again]", PASSWORD)
        page.click("text=Go on")
        page.click("text=Design one")
        page.route("**/htmx.min.js", late)
        page.reload(wait_until="commit")
        page.fill("#lab-text", EASY)
        page.wait_for_selector("#notes >> text=The problem holds: 3 arms")
        page.wait_for_selector("[name=arm1_name][value='كريم ب']")
        page.unroute("**/htmx.min.js")
        page.fill("[name=delta]", "1.5")
        page.wait_for_selector("#notes >> text=delta must be between 0 and 1")
        page.fill("[name=delta]", "0.1")
        page.wait_for_selector("#notes >> text=The problem holds")
        page.fill("[name=name]", "creams")
        page.click("text=Create the study")
        page.wait_for_selector("text=Running: cohort 1")
        study = Study.open(tmp_path / "new.db", "creams")
        for _ in range(40):
            if study.status()["standing"] != "running":
                break
            page.click("nav >> text=Enter")
            rows = [[a.id, a.dose * (0.9 if a.arm == "cream A" else 0.3), a.dose * 0.75] for a in study.ask()]
            if len(rows) < 5:
                typed(page, rows)
                continue
            page.click("summary >> text=Paste a table")
            page.fill("textarea[name=text]", "id,effect,harm\n" + "\n".join(",".join(map(str, r)) for r in rows))
            page.click("button:has-text('Check')")
            page.click("button:has-text('Tell all of them')")
            page.wait_for_selector(f"text={len(rows)} told")
        page.click("nav >> text=Board")
        page.wait_for_selector(".sentence:has-text('Ended: cream A is the best arm')")
        page.click("nav >> text=Journal")
        page.click("text=Verify all of it")
        page.wait_for_selector("text=It holds.")
        page.goto(f"{server.url}/study/creams")  # without scripts, what was verified stands on a page of its own
        page.click("text=Certificate >> nth=0")
        page.wait_for_selector(".verdict:has-text('cream A is the best arm')")
        assert study.log()[-1].actor == "ann (admin)"


def test_each_role_sees_its_own(watch: Watch, many: Server) -> None:
    for role, tabs in (
        ("reader", ["Board", "Journal"]),
        ("statistician", ["Board", "Enter", "Change", "Journal"]),
        ("data entry", ["Enter"]),
    ):
        page = log_in(many, watch.context(), f"a {role}", role)
        page.goto(f"{many.url}/study/running")
        assert page.locator("nav[aria-label=Study] a").all_inner_texts() == tabs
        if role == "data entry":
            assert not page.locator("svg.chart").count()
            page.fill("[name=count]", "2")
            page.click("button:has-text('Take')")
            page.wait_for_selector("li.work >> nth=1")
            assert page.locator("li.work").count() == 2
            first = page.locator("li.work form").first
            first.locator("[name=harm]").fill("0.2")
            first.locator("[name=effect]").fill("0,3")
            first.locator("button:has-text('Tell')").dblclick()
            page.wait_for_selector("li.done >> text=told: harm 0.2, effect 0.3")
    told = [e for e in many.site.hub.study("running").log() if "data entry" in e.actor]
    assert [e.kind for e in told if e.kind not in ("opened", "ended")] == ["assigned", "told"], (
        "a double click tells once"
    )


def test_a_meeting_by_clicking_alone(watch: Watch, many: Server) -> None:
    """A statistician marks the meeting, pauses after seeing what that does, and goes on; a clinic's table is refused by
    its line, then told; a reader sees what changed, verifies, and reads the certificate."""
    study = many.site.hub.study("running")
    plans = log_in(many, watch.context(), "mee", "statistician")
    plans.goto(f"{many.url}/study/running")
    plans.click("text=A meeting looks at this now")
    plans.wait_for_selector("text=Since the last meeting")
    assert "nothing has happened" in plans.inner_text("#board")
    for command, said in (("Pause", "Paused: the label of batch 7"), ("Go on", "Running: cohort")):
        plans.click("nav >> text=Change")
        form = plans.locator("form.card", has=plans.locator(f"h2:text-is('{command}')"))
        form.locator("[name=reason]").fill("the label of batch 7")
        form.locator("button").click()
        plans.wait_for_selector("text=No arm would stand otherwise")
        plans.click("button:has-text('Do it')")
        plans.wait_for_selector(f".sentence:has-text('{said}')")
    enters = log_in(many, watch.context(), "pat", "data entry")
    enters.goto(f"{many.url}/study/running")
    enters.fill("[name=count]", "2")
    enters.click("button:has-text('Take')")
    enters.wait_for_selector("li.work")
    mine = [code.strip() for code in enters.locator("li.work .id").all_inner_texts()]
    before, watch.allowed = len(study.log()), ["422"]
    for rows in ([*mine, "zz-9"], mine):
        enters.click("summary >> text=Paste a table") if not enters.locator("[name=text]").is_visible() else None
        enters.fill("[name=text]", "id\teffect\tharm\n" + "\n".join(f"{id}\t0,2\t0,1" for id in rows))
        enters.click("button:has-text('Check')")
        enters.wait_for_selector("#paste .wrong, #paste .said")
        assert len(study.log()) == before, "checked, and nothing told"
        if "zz-9" in rows:
            assert "line" in enters.inner_text("#paste .wrong") and "zz-9" in enters.inner_text("#paste .wrong")
    enters.dblclick("button:has-text('Tell all of them')")
    enters.wait_for_selector(f"text={len(mine)} told")
    assert sum(e.kind == "told" for e in study.log()[before:]) == len(mine)
    reads = log_in(many, watch.context(), "rea", "reader")
    reads.goto(f"{many.url}/study/running")
    assert f"{len(mine)} told" in reads.inner_text("#board")
    reads.click("nav >> text=Journal")
    reads.click("text=Verify all of it")
    reads.wait_for_selector("text=It holds.")
    reads.click("text=Certificate >> nth=0")
    reads.wait_for_selector("h1")


def test_typing_by_keyboard_through_accidents(watch: Watch, many: Server) -> None:
    """A reload in the middle, a lost connection, a reading that cannot be, two who enter the same."""
    context = watch.context(viewport={"width": 390, "height": 800}, has_touch=True)
    page = log_in(many, context, "types", "statistician")
    study = many.site.hub.study("levels")
    one, two = study.ask(2)
    watch.allowed = ["422", "ERR_INTERNET_DISCONNECTED", "htmx:"]
    page.goto(f"{many.url}/study/levels/enter")
    page.focus(f"#row-{one.id} [name=harm]")
    page.keyboard.type("0.5")
    page.keyboard.press("Tab")
    page.keyboard.type("1")
    page.reload()
    assert page.input_value(f"#row-{one.id} [name=harm]") == "0.5", "what was typed is there after a reload"
    page.focus(f"#row-{one.id} [name=effect]")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#row-{one.id} .wrong")
    assert page.input_value(f"#row-{one.id} [name=effect]") == "1"
    context.set_offline(True)
    page.fill(f"#row-{one.id} [name=harm]", "0")
    with page.expect_event("requestfailed"):
        page.keyboard.press("Enter")
    page.wait_for_selector("#offline:visible")
    page.wait_for_selector(f"#row-{one.id} button:enabled")  # before that a second Enter is taken for a double click
    context.set_offline(False)
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#row-{one.id}.done")
    page.wait_for_selector("#offline", state="hidden")
    other = log_in(many, watch.context(), "too", "statistician")
    other.goto(f"{many.url}/study/levels/enter")
    for who, harm in ((page, "0"), (other, "1")):
        who.fill(f"#row-{two.id} [name=harm]", harm)
        who.fill(f"#row-{two.id} [name=effect]", "1")
        who.press(f"#row-{two.id} [name=effect]", "Enter")
        who.wait_for_selector(f"#row-{two.id}.done, #row-{two.id} .wrong")
    assert "was told as 0 before" in other.inner_text(f"#row-{two.id} .wrong")
    told = [e.data for e in study.log() if e.kind == "told" and e.data["id"] in (one.subject, two.subject)]
    assert len(told) == 2


def test_the_board_follows_and_says_when_it_cannot(watch: Watch, tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    study = play(db, "live", "paper-linear", 3, most=2)
    watch.allowed = ["ERR_", "[object Event]"]
    with bound() as kept:
        port = kept.getsockname()[1]
        with serving(db, port=port) as server:
            page = log_in(server, watch.context(), "sees", "reader")
            page.goto(f"{server.url}/study/live")
            page.click("summary >> text=In numbers")
            study.pause("a phone call")
            page.wait_for_selector("text=Paused: a phone call")
            page.wait_for_selector("text=What to do: resume it with a reason, or stop it.")
            assert page.is_visible("th:has-text('Mean harm')"), "what was opened stays so"
        page.wait_for_selector("#offline:visible")
        with serving(db, port=port):
            study.resume("it was nothing")
            page.wait_for_selector("#offline", state="hidden")
            page.wait_for_selector("text=Running: cohort")


def test_the_demo(watch: Watch, tmp_path: Path) -> None:
    """One link, and subjects arrive while one watches."""
    db = begin(tmp_path)
    arrivals = Arrivals(db, pace=0.1)
    with serving(db, demo=True) as server:
        arrivals.start()
        page = watch.context().new_page()
        page.goto(f"{server.url}/first#{server.site.access.link(None, 'start')}")
        page.click(f"a:has-text('{NAME}')")
        page.wait_for_selector("text=A demonstration")
        until(page, "document.querySelector('.facts dd').innerText !== '0'")
        page.close()
        arrivals.stop()


def test_names_as_long_as_may_be(watch: Watch, many: Server) -> None:
    """Of a study, its arms, a site and a person; on a phone, and in the lab."""
    page = log_in(many, watch.context(viewport={"width": 390, "height": 800}), NAMES[2], "statistician")
    for path in ("", "/enter", "/change", "/journal"):
        page.goto(f"{many.url}/study/{ARABIC}{path}")
        until(page, "document.documentElement.scrollWidth <= 390")
        assert ARABIC in page.inner_text(".crumb")
    page.goto(f"{many.url}/study/{ARABIC}")
    assert [x.strip() for x in page.locator("table.arms th bdi").all_inner_texts()] == list(NAMES)
    boxes = page.locator("table.arms th bdi").evaluate_all("all => all.map(x => x.getBoundingClientRect().right)")
    assert max(boxes) <= 390
    page.click("nav >> text=Enter")
    page.fill("[name=site]", NAMES[0])
    page.click("button:has-text('Reserve')")
    page.wait_for_selector("li.work")
    page.locator("[name=harm]").first.fill("0.1")
    page.locator("[name=effect]").first.fill("0.1")
    page.locator("li.work button:has-text('Tell')").first.click()
    page.wait_for_selector("li.done")
    assert many.site.hub.study(ARABIC).log()[-1].actor.startswith(f"{NAMES[2]} (statistician")
    page.goto(f"{many.url}/lab")
    for k, name in enumerate(NAMES):
        page.fill(f"[name=arm{k}_name]", name)
    page.wait_for_selector(f"#notes >> text={NAMES[2]}")
    page.fill("[name=name]", NAMES[1][:100])
    page.click("text=Create the study")
    page.wait_for_selector("text=Running: cohort 1")
    until(page, "document.documentElement.scrollWidth <= 390")  # once its styles are there


def test_work_in_the_background(watch: Watch, many: Server) -> None:
    page = log_in(many, watch.context(), "plans", "statistician")
    page.goto(f"{many.url}/lab")
    page.fill("[name=trials]", "20000")
    page.check("[name='design safebai-linear']")
    page.click("button:has-text('Simulate')")
    page.wait_for_selector(".job progress")
    page.click(".job >> text=Cancel")
    page.wait_for_selector("#result >> text=cancelled")
    page.uncheck("[name='design safebai-linear']")
    page.fill("[name=trials]", "20")
    page.click("button:has-text('Simulate')")
    page.wait_for_selector("#result td:has-text('surefoot-linear')")
    page.goto(f"{many.url}/study/running")
    page.click("text=Work out the table")
    page.wait_for_selector("#preview table.decide")
    page.fill("[name=trials]", "20")
    page.click("button:has-text('Forecast')")
    page.wait_for_selector("#forecast td")
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 2, "the meeting's paper"


def test_many_thousand_readings(watch: Watch, tmp_path: Path) -> None:
    """Nothing is sent whole, and nothing takes long: every page is small, whatever stands behind it."""
    long_study(tmp_path / "big.db", "big", 5_000)
    with serving(tmp_path / "big.db") as server:
        page = log_in(server, watch.context(), "reads", "statistician")
        sizes = list[int]()
        shown = re.compile("/study/big(/enter|/journal|/board)?([?].*)?$")
        page.on("response", lambda r: sizes.append(int(r.headers["content-length"])) if shown.search(r.url) else None)
        page.goto(f"{server.url}/study/big")
        assert page.inner_text(".facts dd >> nth=0") == "5,000"
        assert page.locator("svg.chart circle").count() < 500
        page.click("nav >> text=Journal")
        page.wait_for_selector("table.journal tbody tr >> nth=99")
        assert page.locator("table.journal tbody tr").count() == 100
        page.click("text=Older")
        page.wait_for_url("**/journal?before=*")  # and until it is there as a whole
        assert page.locator("table.journal tbody tr").count() == 100
        page.select_option("[name=kind]", "opened")
        page.click("button:has-text('Filter')")
        page.wait_for_url("**kind=opened*")
        assert 2 <= page.locator("table.journal tbody tr").count() < 20
        page.click("nav >> text=Enter")
        rows = page.locator("li.work")
        page.wait_for_selector("li.work >> nth=49")
        assert rows.count() == 50
        rows.first.locator("[name=harm]").fill("0.1")
        rows.first.locator("[name=effect]").fill("0.2")
        rows.first.locator("button").click()
        page.wait_for_selector("li.done")
        page.click("nav >> text=Board")
        page.wait_for_selector(".facts dd:has-text('5,001')")
        page.close()
        assert len(sizes) >= 6 and max(sizes) < 150_000


PAGES = (
    "/", "/study/running", "/study/ended", "/study/paused", "/study/hundred", "/study/levels", "/study/running/enter",
    "/study/running/change", "/study/running/journal", "/access", "/lab", "/api/docs", "/study/nothing", "/?search=zz",
)  # fmt: skip


def test_nobody_is_kept_out(watch: Watch, many: Server) -> None:
    """axe-core finds nothing on any page, nor what colours and a phone change; nothing is wider than a phone."""
    watch.allowed = ["404"]
    script = axe()
    for scheme, width in (("light", 1280), ("dark", 390)):
        context = watch.context(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
        page = log_in(many, context, "boss", "admin")
        arabic = f"/study/{ARABIC}"
        for path in (*PAGES, arabic, "/login") if scheme == "light" else (*PAGES[:2], *PAGES[6:11], arabic):
            page.goto(many.url + path)
            assert page.evaluate("document.querySelector('h1').getBoundingClientRect().height") > 0
            until(page, f"document.documentElement.scrollWidth <= {width}")
            if "hundred" in path:
                continue  # the same page, long
            page.evaluate(script)
            every = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
            only = every if scheme == "light" else {"type": "rule", "values": ["color-contrast", "target-size"]}
            rules = {"resultTypes": ["violations"], "runOnly": only}
            found = page.evaluate("rules => axe.run(document, rules)", rules)["violations"]
            said = [
                f"{v['id']}: {n['html'][:150]} {n.get('failureSummary', '')[:200]}"
                for v in found
                for n in v["nodes"][:2]
            ]
            assert not said, f"{path}, {scheme}: " + "\n".join(said)
