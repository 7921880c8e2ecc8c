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
		expect 0 "$AQUIFER" sim control --bug "$bug" --seeds 20
	done
	exit
fi

expect 0 "$AQUIFER" sim control --failovers 60 --json
json "$TMP/out" 'd["seeds"][0]["grants"] > 20 and d["seeds"][0]["unknown"] > 0 and
	d["seeds"][0]["changes"] > 20 and d["seeds"][0]["renewals"] > 20 and
	d["seeds"][0]["blocks"] > 10 and d["seeds"][0]["moves"] > 1 and
	d["seeds"][0]["writes"] > 100 and "violation" not in d["seeds"][0]' >/dev/null
hash=$(json "$TMP/out" 'd["seeds"][0]["hash"]')
expect 0 "$AQUIFER" sim control --failovers 60 --json
[[ $(json "$TMP/out" 'd["seeds"][0]["hash"]') == "$hash" ]] ||
	fail "the same seed, another play"
for bug in no-term-guard answer-before-commit create-twice old-clock \
	give-back-in-words old-lease reuse-early ids-again \
	take-ungiven drop-ungiven drain-unsaved left-early; do
	expect 0 "$AQUIFER" sim control --bug "$bug"
done
expect 0 "$AQUIFER" sim control --bug old-clock --json
json "$TMP/out" '"down" in d["seeds"][0]["violation"]' >/dev/null

expect 0 "$AQUIFER" sim control --help
grep -q '^usage: aquifer sim control' "$TMP/out" || fail "no usage"
expect 0 "$AQUIFER" sim control --bug list
[[ $(wc -l <"$TMP/out") == 22 ]] || fail "not all bugs are listed"
expect 2 "$AQUIFER" sim control --bug none-such
expect 2 "$AQUIFER" sim control --failovers 0
expect 2 "$AQUIFER" sim control --frob
