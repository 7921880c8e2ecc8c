#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim NAME --figure F --out DIR` for every system that has figures:
# small runs, one shape of JSON, a well-formed picture; one rule for exit codes.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

mkdir "$TMP/svg"

# System, figure, and what makes it small.
figure() {
	expect 0 "$AQUIFER" sim "$1" --figure "$2" --json --out "$TMP/svg" "${@:3}"
	[[ $(json "$TMP/out" 'd["sim"], d["figure"]') == "('$1', '$2')" ]] ||
		fail "$1 $2: another shape"
	[[ $(json "$TMP/out" 'len(d["points"]) > 0 and len(d["claims"]) >= 0 and
		len(d["source"]) > 0') == True ]] || fail "$1 $2: no points"
	[[ -s $TMP/svg/$1-$2.svg ]] || fail "$1 $2: no picture"
}
figure offload 13 --quick
figure kv 3.18 --quick
figure switch 2.9 --quick --threads 8
figure paging 12 --quick
figure edm 7 --quiet
figure nic-model 1.2
python3 "$(dirname "$0")/../unit/check_svg.py" "$TMP/svg" || fail "no SVG"

for system in offload kv switch paging edm nic-model; do
	expect 2 "$AQUIFER" sim "$system" --figure none-such
	grep -q -- '--figure none-such' "$TMP/err" || fail "$system: which option?"
	expect 2 "$AQUIFER" sim "$system" --figure all --out /nowhere/at/all
	expect 2 "$AQUIFER" sim "$system" --figure all --frob
	expect 0 "$AQUIFER" sim "$system" --figure all --help
	grep -q -- '--out DIR' "$TMP/out" || fail "$system: no help"
done
# None of its points were asked for.
expect 1 "$AQUIFER" sim switch --figure 2.9 --threads 7
