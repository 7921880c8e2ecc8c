#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim mind --model`: every promise holds in all states, a planted bug is
# found and told as a way that leads to it, and wrong arguments are refused. With
# `full`: the long cases, too.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

if [[ ${1:-} == full ]]; then
	expect 0 "$AQUIFER" sim mind --model --full
	[[ $(grep -c ' holds ' "$TMP/out") == 20 ]] || fail "not all cases"
	expect 0 "$AQUIFER" sim mind --model --case split --bug join-owners
	exit
fi

expect 0 "$AQUIFER" sim mind --model --json
[[ $(json "$TMP/out" '[c["verdict"] for c in d["cases"]] == ["holds"] * 9 and
	all(c["states"] > 1000 for c in d["cases"])') == True ]] ||
	fail "a promise is broken"

expect 0 "$AQUIFER" sim mind --model --bug fin-early
grep -q "stores are refused, after 8 steps" "$TMP/out" || fail "no finding"
grep -q "   8  switch: takes .'s give-back of page 0" "$TMP/out" ||
	fail "no way to it"
expect 0 "$AQUIFER" sim mind --model --case calm --bug drop-queue --json
[[ $(json "$TMP/out" 'd["cases"][0]["verdict"] == "stuck" and
	len(d["cases"][0]["trace"]) > 3') == True ]] || fail "no trace"
# A bug that this case cannot show.
expect 1 "$AQUIFER" sim mind --model --case calm --bug no-clean
# Not all states looked at is not a pass.
expect 2 "$AQUIFER" sim mind --model --states 100

expect 0 "$AQUIFER" sim mind --model --help
grep -q '^usage: aquifer sim mind --model' "$TMP/out" || fail "no usage"
expect 0 "$AQUIFER" sim mind --model --bug list
[[ $(wc -l <"$TMP/out") == 19 ]] || fail "not all bugs are listed"
expect 2 "$AQUIFER" sim mind --model --bug none-such
expect 2 "$AQUIFER" sim mind --model --case none-such
expect 2 "$AQUIFER" sim mind --model --states 0
expect 2 "$AQUIFER" sim mind --model --frob
