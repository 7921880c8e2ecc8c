#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command has a man page, with the options that --help lists and the parser
# takes, no more and no less; mandoc finds no fault in it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 0 "$AQUIFER" help --json
names=$(json "$TMP/out" '" ".join(c["name"] for c in d["commands"])')
for name in $names; do
	case $name in
	help | version) page=aquifer.1.scd ;;
	*) page=aquifer-$name.1.scd ;;
	esac
	[[ -e $AQ_SOURCE/man/$page ]] || fail "no man/$page"
	grep -q "$name" "$AQ_SOURCE/man/aquifer.1.scd" ||
		fail "man/aquifer.1.scd does not mention $name"
	"$AQUIFER" help --json "$name" >"$TMP/$page.json"
done
python3 - "$AQ_SOURCE/man" "$TMP" <<'PYTHON' || fail "pages, --help and parser differ"
import json, os, pathlib, re, subprocess, sys
man, tmp = map(pathlib.Path, sys.argv[1:])
aquifer, wrong = os.environ["AQUIFER"], []


def said(*words):
    p = subprocess.run([aquifer, *words], capture_output=True, text=True)
    return p.stdout + p.stderr


for f in tmp.glob("*.json"):
    d = json.loads(f.read_text())
    page = (man / f.stem).read_text()
    helped = {o["name"] for o in d["options"]}
    # Headings of entries: lines that begin with an option.
    entries = re.findall(r"^\*-.*", page, re.M)
    described = {o for e in entries for o in re.findall(r"\*--([a-z0-9-]+)\*", e)}
    wrong += [f"{f.stem} lacks --{o}" for o in helped - described]
    if helped and f.stem != "aquifer.1.scd":
        wrong += [f"--help lacks --{o} of {f.stem}" for o in described - helped]
    verb = [d["entries"][0]["name"]] if d.get("entries") else []
    for o in d["options"]:
        value = ["1"] if "value" in o else []
        if "has no option" in said(d["name"], *verb, "--" + o["name"], *value, "--help"):
            wrong.append(f"{d['name']} does not take --{o['name']}")
    if helped and f"  --{min(helped)}" not in said(d["name"], "--help"):
        wrong.append(f"{d['name']} --help lists nothing")
    if helped and "has no option" not in said(d["name"], *verb, "--zzzz"):
        wrong.append(f"{d['name']} takes any option")
sys.exit("\n".join(wrong) or 0)
PYTHON
"$AQUIFER" info --nic soft --json >"$TMP/out" 2>/dev/null || true
for name in $(json "$TMP/out" '" ".join(s["name"] for s in d["settings"])'); do
	grep -q "^\*${name#*.}\*" "$AQ_SOURCE/man/rack.ini.5.scd" ||
		fail "man/rack.ini.5.scd does not describe $name"
done
need scdoc mandoc
for source in "$AQ_SOURCE"/man/*.scd; do
	page=$TMP/$(basename "$source" .scd)
	scdoc <"$source" >"$page" || fail "$source"
	# scdoc puts a paragraph macro after every heading; all else is ours.
	mandoc -Tlint -W warning "$page" |
		grep -v 'skipping paragraph macro' >"$TMP/lint" || true
	if [[ -s $TMP/lint ]]; then
		cat "$TMP/lint"
		fail "$source"
	fi
done
