#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command has a man page, and mandoc finds no fault in it.
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
# Every option is in its page.
python3 - "$AQ_SOURCE/man" "$TMP" <<'PYTHON' || fail "a page lacks an option"
import json, pathlib, sys
man, tmp = map(pathlib.Path, sys.argv[1:])
missing = [f"{f.stem}: --{o['name']}" for f in tmp.glob("*.json")
           for o in json.loads(f.read_text())["options"]
           if f"--{o['name']}*" not in (man / f.stem).read_text()]
sys.exit("\n".join(missing) or 0)
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
