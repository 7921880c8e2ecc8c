#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim control`: promises hold while leaders fail over, a seed repeats
# itself, planted bugs are found, wrong arguments are refused. With `full`: ten
# thousand failovers, and every bug.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

if [[ ${1:-} == full ]]; then
	expect 0 "$AQUIFER" sim control --seed 100 --seeds 20 --failovers 500 --json
	[[ $(json "$TMP/out" 'sum(s["failovers"] for s in d["seeds"])') == 10000 ]] ||
		fail "not all failovers"
	for bug in $("$AQUIFER" sim control --bug list | cut -d' ' -f1); do
		expect 0 "$AQUIFER" sim control --bug "$bug" --seeds 40
	done
	exit
fi

expect 0 "$AQUIFER" sim control --seeds 4 --failovers 60 --json
json "$TMP/out" 'all(sum(s[what] for s in d["seeds"]) > least for what, least in
	(("grants", 80), ("unknown", 4), ("changes", 80), ("renewals", 80), ("again", 8),
	("blocks", 40), ("chain_writes", 0), ("copies", 0), ("moves", 4), ("writes", 400))) and
	not any("violation" in s for s in d["seeds"])' >/dev/null
hash=$(json "$TMP/out" '[s["hash"] for s in d["seeds"]]')
expect 0 "$AQUIFER" sim control --seeds 4 --failovers 60 --json
[[ $(json "$TMP/out" '[s["hash"] for s in d["seeds"]]') == "$hash" ]] ||
	fail "the same seeds, other plays"
for bug in no-term-guard answer-before-commit create-twice name-twice old-clock \
	give-back-in-words old-lease reuse-early ids-again \
	take-ungiven drop-ungiven drain-unsaved left-early; do
	expect 0 "$AQUIFER" sim control --bug "$bug" --seeds 5
done
expect 0 "$AQUIFER" sim control --bug old-clock --json
json "$TMP/out" '"down" in d["seeds"][0]["violation"]' >/dev/null

expect 0 "$AQUIFER" sim control --help
grep -q '^usage: aquifer sim control' "$TMP/out" || fail "no usage"
expect 0 "$AQUIFER" sim control --bug list
[[ $(wc -l <"$TMP/out") == 27 ]] || fail "not all bugs are listed"
expect 2 "$AQUIFER" sim control --bug none-such
expect 2 "$AQUIFER" sim control --failovers 0
expect 2 "$AQUIFER" sim control --frob
