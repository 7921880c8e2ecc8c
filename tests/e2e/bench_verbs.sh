#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer bench verbs` runs, measures every subject, and tells the truth about
# ratios that cannot count. Its numbers are not judged here: the machine is busy.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 0 "$AQUIFER" bench verbs --help
expect 2 "$AQUIFER" bench verbs --rounds 0
expect 2 "$AQUIFER" bench verbs --only nothing_like_this

expect 0 "$AQUIFER" bench verbs --quick --json
json "$TMP/out" 'd["bench"] == "verbs" and d["commit"] and d["machine"]["cpu"]'
json "$TMP/out" 'len([r for r in d["rows"] if r.get("n", 0) > 0]) >= 10'
json "$TMP/out" 'all(r["guard"] for r in d["rows"] if "n" in r)'
# Every ratio is either a number or void with its reason, never both.
json "$TMP/out" 'len(d["ratios"]) + len(d["void"]) == 18 and
	not set(d["ratios"]) & set(d["void"]) and
	all(d["void"].values())'
json "$TMP/out" 'not [r for r in d["rows"] if "error" in r and
	"ucx" not in r["name"] and "foreign load" not in r["error"]]'

# One group alone, for people.
expect 0 "$AQUIFER" bench verbs --quick --only caller_time
grep -q 'caller_shm_post' "$TMP/out" || fail "no caller's time"
grep -q 'Cowbird' "$TMP/out" || fail "no comparison"
