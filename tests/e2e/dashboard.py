# SPDX-License-Identifier: Apache-2.0
"""Looks at the controller's page as a person would: dashboard.py quick|full
RUNDIR PROFILE PICTURES TOKEN (a tenant's). It waits for what shall be seen, and judges no time."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

DEADLINE_S = 120
HTML = "<img src=x onerror=window.hacked=1>"
how, rundir, profile, pictures = sys.argv[1:5]
aquifer = os.environ["AQUIFER"]
pathlib.Path(pictures).mkdir(parents=True, exist_ok=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))


def start():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage",
                 "disable-background-networking", "no-first-run", "no-proxy-server", "window-size=1200,1000",
                 "user-data-dir=" + profile):
        options.add_argument("--" + word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_page_load_timeout(DEADLINE_S)
    driver.set_script_timeout(DEADLINE_S)
    return driver


def script(text, *values):
    return driver.execute_script("return (" + text + ")", *values)


def until(what, text, *values):
    """Until an expression is true in the page; its value."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        value = script(text, *values)
        if value:
            return value
        time.sleep(0.1)
    shot("failed")
    sys.exit(f"never: {what}: {text}\n{script('document.body.innerText')}")


def check(what, is_so):
    if not is_so:
        shot("failed")
        sys.exit(f"not so: {what}\n{script('document.body.innerText')}")


def shot(name):
    driver.save_screenshot(f"{pictures}/{name}.png")


def address(*words):
    text = subprocess.check_output([aquifer, "dashboard", "--json", *words], text=True)
    return json.loads(text)["address"]


def keys(*words):
    ActionChains(driver).send_keys(*words).perform()


def view(name):
    script("location.hash = '#/" + name + "'")
    until("view " + name, "document.querySelector('#views [aria-current]').dataset.view === arguments[0]",
          name.partition("?")[0].partition("/")[0])


COLUMN = "[...document.querySelectorAll('#view tbody tr')].map((r) => r.children[%d].innerText)"
STATE = ("([...document.querySelectorAll('#view tbody tr')].find((r) => r.children[0].innerText === '%s')"
         " || {innerText: ''}).innerText")
VIEWS = ("overview", "nodes", "tenants", "names", "ns", "moves", "events", "controllers")
LIVE = "document.getElementById('state').textContent === 'Live.'"


# ---- what is seen

def refuses_a_wrong_code():
    driver.get(base + "/#/nodes?code=" + "f" * 64)
    until("the reason", "document.getElementById('login-why').textContent.includes('aquifer dashboard')")
    check("the code has left the address", "code" not in driver.current_url)
    check("nothing is shown", script("document.getElementById('view').hidden && !document.getElementById('login').hidden"))
    check("the code is tried", network_errors() == {401})
    shot("wrong-code")


def lets_in():
    once = address()
    driver.get("about:blank")
    driver.get(once)
    until("the overview", LIVE + " && document.querySelector('#chart svg path')")
    check("the code has left the address", driver.current_url == base + "/#/overview")
    until("nodes", "document.getElementById('tiles').innerText.includes('of 4')")
    driver.switch_to.new_window("tab")
    driver.get(once)
    until("the code works once", "document.getElementById('login-why').textContent.includes('aquifer dashboard')")
    check("that is why", network_errors() == {401})
    driver.close()
    driver.switch_to.window(driver.window_handles[0])
    check("every view has its button", script("[...document.querySelectorAll('#views [data-view]')].map((b) => b.dataset.view).join()")
          == ",".join(VIEWS))
    check("no cookie", script("document.cookie === '' && localStorage.length === 0") and not driver.get_cookies())
    check("the chart has words", "used" in script("document.querySelector('#chart svg').getAttribute('aria-label')"))
    script("document.querySelector('details').open = true")
    until("a table behind the chart", "document.querySelectorAll('#history tbody tr').length === 300")
    shot("overview")
    print("first picture after %d ms" % script("performance.getEntriesByName('picture')[0].startTime"))


def shows_html_as_text():
    view("names")
    until("the name", COLUMN % 0 + ".includes(arguments[0])", HTML)
    check("it is text", script("!document.querySelector('#view img') && !window.hacked"))
    shot("names")


def shows_a_lease_run_out():
    view("ns")
    for words in (["/short", "--lease", "600000"], ["/short/below"]):
        subprocess.run([aquifer, "ns", "mkdir", *words], check=True, stdout=subprocess.DEVNULL)
    until("it lives", STATE % "/short/below" + ".includes('live')")
    until("the time left", STATE % "/short/below" + ".includes('9 min')")
    check("a file that stays, its blocks", all(w in script(STATE % "/kept/file") for w in ("file", "ready", "64K", "kept", " > ")))
    shot("jobs")
    view("ns/kept")
    until("what is below", COLUMN % 0 + ".join() === '/kept,/kept/file'")
    view("ns/short")
    until("what is below", COLUMN % 0 + ".join() === '/short,/short/below'")
    token = pathlib.Path(rundir, "token").read_text().strip()
    subprocess.run(["curl", "-sSf", "--unix-socket", rundir + "/c0.control.sock", "-X", "PATCH", "-d", '{"lease_ms":500}',
                    "-H", "Authorization: Bearer " + token, "http://c0/v1/ns/short"], check=True, stdout=subprocess.DEVNULL)
    began = time.monotonic()
    until("it is over", COLUMN % 0 + ".length === 0")
    print("a lease of 0.5 s and as long a grace: gone from the page after %.1f s" % (time.monotonic() - began))
    view("ns")
    until("others are not", COLUMN % 0 + ".join() === '/kept,/kept/file'")


def sorts_and_filters():
    view("nodes")
    until("all nodes", COLUMN % 0 + ".join() === 'e0,m0,m1,odd'")
    button = "[...document.querySelectorAll('#view th button')].find((b) => b.textContent.startsWith('%s'))"
    script((button + ".click()") % "Used")
    until("by use", COLUMN % 0 + ".join() === 'e0,odd,m0,m1'")
    script((button + ".click()") % "Used")
    until("the other way", COLUMN % 0 + ".join() === 'm1,m0,odd,e0'")
    check("it is said", script("document.querySelector('th[aria-sort=descending]').innerText.startsWith('Used')"))
    driver.find_element("id", "filter").send_keys("memory M")
    until("rows that match", COLUMN % 0 + ".join() === 'm1,m0,odd'")
    driver.find_element("id", "filter").send_keys("1.sock")
    until("fewer rows", "document.getElementById('count').textContent === '1 of 4'")
    check("the address has it all", "sort=-used" in driver.current_url and "filter=memory+M1.sock" in driver.current_url)
    driver.refresh()
    until("the same after a reload", COLUMN % 0 + ".join() === 'm1' && document.getElementById('filter').value === 'memory M1.sock'")
    shot("nodes")


def tell(token, path, body):
    """A request to the controller that a node or the administrator makes."""
    secret = pathlib.Path(rundir, token).read_text().strip()
    text = subprocess.check_output(["curl", "-sSf", "--unix-socket", rundir + "/c0.control.sock", "-d", json.dumps(body),
                                    "-H", "Authorization: Bearer " + secret, "http://c0" + path], text=True)
    return json.loads(text or "{}")


def shows_what_moves():
    epoch = int(sys.argv[6])
    view("nodes")
    until("operations", "document.querySelector('#view th:nth-child(5)').innerText === 'Operations/s'")
    ops = 0
    while not script("/[1-9]/.test([...document.querySelectorAll('#view tbody tr')].find((r) =>"
                     " r.children[0].innerText === 'odd').children[4].innerText)"):
        ops += 1000000
        tell("node-token", "/v1/nodes/odd/beat", {"incarnation": "00000000000000aa", "epoch": epoch, "used": 4096, "ops": ops})
    view("moves")
    until("nothing moves", "document.getElementById('count').textContent === '0'")
    check("what did", "0 flushed" in script("document.getElementById('view').innerText"))
    tell("admin-token", "/v1/nodes/odd/drain", {"drain": True})
    until("a node is emptied", STATE % "drain" + ".includes('odd')")
    shot("moves")
    tell("admin-token", "/v1/nodes/odd/drain", {"drain": False})
    until("nothing moves again", COLUMN % 0 + ".length === 0")


def shows_other_ranges():
    view("overview")
    until("a chart", "document.querySelector('#chart svg')")
    script("(() => { const r = document.getElementById('range'); r.value = '3600';"
           " r.dispatchEvent(new Event('change')); return true; })()")
    until("an hour", "document.querySelector('#chart svg').getAttribute('aria-label').includes('1 hour')")
    check("the address has it", driver.current_url.endswith("#/overview?range=3600"))
    # A permanent address also works when it is typed, and the browser's own buttons go back.
    driver.get(base + "/#/nodes?sort=-used&filter=m1")
    until("as the address says", COLUMN % 0 + ".join() === 'm1'")
    driver.back()
    until("back", "document.querySelector('#chart svg').getAttribute('aria-label').includes('1 hour')")


def shows_a_tenant_its_own():
    driver.switch_to.new_window("tab")
    os.environ["AQUIFER_TOKEN"] = sys.argv[5]
    driver.get(address("--tenant"))
    del os.environ["AQUIFER_TOKEN"]
    until("whose it is", "document.querySelector('h1').innerText.includes('tenant team')")
    view("names")
    until("its names", COLUMN % 0 + ".join() === 'theirs'")
    view("tenants")
    until("itself", COLUMN % 0 + ".join() === 'team'")
    view("nodes")
    until("all nodes", COLUMN % 0 + ".join() === 'e0,m0,m1,odd'")
    check("not their memory", not script("document.querySelector('#view meter')"))
    driver.close()
    driver.switch_to.window(driver.window_handles[0])


def fits_a_narrow_window():
    driver.set_window_size(360, 740)
    for name in VIEWS:
        view(name)
        until("content", "document.querySelector('#view tbody tr, #view table')")
        check(name + " fits", script("innerWidth <= 360 && document.documentElement.scrollWidth <= innerWidth"))
        shot("narrow-" + name)
    driver.set_window_size(1200, 1000)


CONTRAST = """(() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.getClientRects().length || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const s = getComputedStyle(e), a = light(parse(e instanceof SVGElement ? s.fill : s.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([e.tagName, e.textContent.slice(0, 30), ratio]);
  }
  return JSON.stringify(bad);
})()"""

UNNAMED = """JSON.stringify([...document.querySelectorAll('a, button, input, select, summary, [tabindex="0"], svg[role=img]')]
  .filter((e) => e.getClientRects().length)
  .filter((e) => !(e.getAttribute('aria-label') || (e.labels && e.labels.length) || e.textContent.trim()))
  .map((e) => e.outerHTML.slice(0, 80)))"""


def follows_the_system():
    """Dark or light as the system is, where nobody has chosen."""
    colour = "getComputedStyle(document.body).backgroundColor"
    seen = {}
    for theme in ("dark", "light"):
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        seen[theme] = until("a colour", colour)
        check(f"contrast in {theme}: {script(CONTRAST)}", script(CONTRAST) == "[]")
    check(f"two themes: {seen}", seen["dark"] != seen["light"])
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def can_be_read():
    for theme in ("light", "dark"):
        script("(() => { const t = document.getElementById('theme'); t.value = arguments[0];"
               " t.dispatchEvent(new Event('change')); return true; })()".replace("arguments[0]", json.dumps(theme)))
        for name in VIEWS:
            view(name)
            until("content", "document.querySelector('#view tbody tr, #view table')")
            check(f"contrast in {theme} {name}: {script(CONTRAST)}", script(CONTRAST) == "[]")
            check(f"labels in {name}: {script(UNNAMED)}", script(UNNAMED) == "[]")
            shot(f"{theme}-{name}")


def tab_to(what):
    """Tab until the element that has the focus begins with that word; what has the focus can be seen."""
    for _ in range(40):
        keys(Keys.TAB)
        if script("document.activeElement === document.body"):
            continue  # the browser's own buttons, between the end and the beginning
        check("the focus can be seen", script("getComputedStyle(document.activeElement).outlineStyle !== 'none'"))
        if script("document.activeElement.innerText || document.activeElement.id").startswith(what):
            return
    check(f"the keyboard reaches {what}", False)


def works_by_keyboard():
    driver.switch_to.new_window("tab")
    driver.get(base + "/")
    until("another tab knows nothing", "!document.getElementById('login').hidden")
    tab_to("code")
    keys(address(), Keys.ENTER)
    until("in by the keyboard", LIVE)
    tab_to("Skip")
    keys(Keys.ENTER)
    until("the view has the focus", "document.activeElement.id === 'view'")
    driver.refresh()
    until("still in", LIVE)
    tab_to("Tenants")
    keys(Keys.ENTER)
    until("tenants", COLUMN % 0 + ".join() === 'default,team'")
    tab_to("filter")
    keys("team")
    until("filtered", COLUMN % 0 + ".join() === 'team'")
    keys(Keys.BACKSPACE * 4)
    tab_to("Used")
    keys(Keys.ENTER, Keys.ENTER)
    until("sorted", COLUMN % 0 + ".join() === 'team,default'")
    # The focus stays where it is while the page is refreshed.
    seen = script("document.getElementById('clock').textContent")
    until("refreshed", "document.getElementById('clock').textContent !== arguments[0]", seen)
    check("the focus stays", script("document.activeElement.innerText.startsWith('Used')"))
    driver.close()
    driver.switch_to.window(driver.window_handles[0])


def pid_of(name):
    return int(pathlib.Path(rundir, name + ".pid").read_text().split()[0])


def shows_a_node_that_died():
    view("nodes")
    until("it is up", STATE % "m1" + ".includes('up')")
    os.kill(pid_of("m1"), signal.SIGKILL)
    until("it is missed", "/suspect|down/.test(" + STATE % "m1" + ")")
    check("the other is not", "up" in script(STATE % "m0"))
    view("events")
    until("an event", "[...document.querySelectorAll('#view tbody tr')].some((r) => /m1\\s+is (suspect|down)/.test(r.innerText))")
    shot("node-died")


def outlives_the_controller():
    view("nodes")
    until("a picture", COLUMN % 0 + ".length === 4")
    network_errors()
    os.kill(pid_of("c0"), signal.SIGKILL)
    until("since when", "/not answered since \\d+:\\d\\d:\\d\\d/.test(document.getElementById('state').textContent)")
    said = script("document.getElementById('state').textContent")
    check("the last picture stays", script(COLUMN % 0 + ".length") == 4)
    view("tenants")
    until("other views, too", COLUMN % 0 + ".includes('team')")
    shot("controller-gone")
    check("since then, not since now", script("document.getElementById('state').textContent") == said)
    subprocess.run([aquifer, "up"], check=True, stdout=subprocess.DEVNULL)
    until("it comes back by itself", LIVE)
    view("controllers")
    until("the next term", COLUMN % 2 + ".join() === '2'")
    check("nothing was refused meanwhile", not network_errors() - {0, 503})
    shot("controller-back")


# ---- what went over the network, and what the browser complained of

def network_errors():
    """Statuses of requests that failed since the last call, 0: no answer. Anything else in the console is a defect."""
    found = set()
    for line in driver.get_log("browser"):
        text = line["message"]
        if line["source"] != "network":
            if line["level"] in ("SEVERE", "WARNING"):
                sys.exit(f"console: {line}")
        elif "status of " in text:
            found.add(int(text.partition("status of ")[2].split()[0]))
        elif "ERR_CONNECTION" in text or "ERR_EMPTY_RESPONSE" in text or "ERR_INCOMPLETE" in text:
            found.add(0)
        else:
            sys.exit(f"console: {line}")
    return found


def asks_nobody_else():
    """How many requests there were since the last call."""
    seen = 0
    for line in driver.get_log("performance"):
        event = json.loads(line["message"])["message"]
        if event["method"] != "Network.requestWillBeSent":
            continue
        if event["params"]["documentURL"].startswith("chrome://"):
            continue  # the browser's own first page
        url = event["params"]["request"]["url"]
        seen += 1
        if not url.startswith(base + "/") and url != "about:blank":
            sys.exit("a request to another host: " + url)
    return seen


base = address().partition("/#")[0]
quick = [refuses_a_wrong_code, lets_in, shows_html_as_text, shows_a_lease_run_out, sorts_and_filters, shows_what_moves]
rest = [shows_other_ranges, shows_a_tenant_its_own, fits_a_narrow_window, follows_the_system, can_be_read, works_by_keyboard, shows_a_node_that_died, outlives_the_controller]
driver = start()
requests = 0
try:
    for step in quick + (rest if how == "full" else []):
        began = time.monotonic()
        step()
        requests += asks_nobody_else()
        check("no request failed", not network_errors())
        print(f"ok: {step.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
    check(f"{requests} requests were seen", requests >= 10)
finally:
    driver.quit()
