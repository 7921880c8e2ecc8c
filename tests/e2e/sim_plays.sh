#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every play of `aquifer sim` has the same command line: --help, --bug list, one
# JSON, the same hash for the same seed, and the same exit codes.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

plays=("verbs" "offload" "kv" "index" "index --kind tree" "swordbox" "switch"
	"page" "hostile" "walk" "mind" "elastic")

hash_of() {
	expect 0 "$AQUIFER" sim "$@" --json
	json "$TMP/out" 'd["hash"]'
}

for play in "${plays[@]}"; do
	read -ra words <<<"$play"
	expect 0 "$AQUIFER" sim "${words[@]}" --help
	grep -q "^usage: aquifer sim ${words[0]}" "$TMP/out" ||
		fail "$play: no usage"
	grep -q '^  --seeds N|A..B ' "$TMP/out" || fail "$play: no options"
	expect 0 "$AQUIFER" sim "${words[@]}" --bug list
	[[ $(hash_of "${words[@]}" --seed 2) == $(hash_of "${words[@]}" --seed 2) ]] ||
		fail "$play: another hash for the same seed"
	expect 0 "$AQUIFER" sim "${words[@]}" --seeds 2..3 --json
	[[ $(json "$TMP/out" 'set(d) >= {"sim", "first_seed", "last_seed", "hash",
		"runs", "violations", "counts", "runs_with"} and d["runs"] == 2 and
		set(d["counts"]) == set(d["runs_with"])') == True ]] ||
		fail "$play: other fields"
	expect 2 "$AQUIFER" sim "${words[@]}" --bug none-such
	expect 2 "$AQUIFER" sim "${words[@]}" --seeds 0
	expect 2 "$AQUIFER" sim "${words[@]}" --seed
	expect 2 "$AQUIFER" sim "${words[@]}" --frob
	grep -q -- "has no option '--frob'" "$TMP/err" || fail "$play: no reason"
done
expect 2 "$AQUIFER" sim index --kind heap
expect 2 "$AQUIFER" sim switch --program none-such
expect 2 "$AQUIFER" sim verbs --seed 1 --pcap /nowhere/at/all
