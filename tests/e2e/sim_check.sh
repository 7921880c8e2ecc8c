#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim check`: verdicts are exit codes; a bad line is named.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

line() { # process type f value
	printf '{"process":%d,"type":"%s","f":"%s","key":1,"value":%s}\n' "$@"
}

{
	line 0 invoke put 5
	line 1 invoke get null
	line 0 ok put 5
	line 1 ok get 5
} >"$TMP/good"
{
	cat "$TMP/good"
	line 0 invoke get null
	line 0 ok get null
} >"$TMP/stale"

expect 0 "$AQUIFER" sim check "$TMP/good"
grep -q '^linearizable: 2 operations on 1 keys' "$TMP/out" || fail "no verdict"
expect 0 "$AQUIFER" sim check --model register --json "$TMP/good"
[[ $(json "$TMP/out" 'd["verdict"]') == linearizable ]] || fail "no JSON"
expect 1 "$AQUIFER" sim check "$TMP/stale"
grep -q "process 0's read gave nil" "$TMP/out" || fail "no operation named"
expect 3 "$AQUIFER" sim check --steps 1 "$TMP/good"
expect 0 "$AQUIFER" sim check --initial 0 - <"$TMP/good"

expect 2 "$AQUIFER" sim check
expect 2 "$AQUIFER" sim check --model queue "$TMP/good"
expect 2 "$AQUIFER" sim check /nowhere
line 2 ok get 1 >>"$TMP/good"
expect 2 "$AQUIFER" sim check "$TMP/good"
grep -q 'good: line 5: ' "$TMP/err" || fail "the line is not named"
line 0 invoke cas '[1,2]' >"$TMP/cas"
expect 2 "$AQUIFER" sim check --model register "$TMP/cas"
grep -q 'a register has no cas' "$TMP/err" || fail "no reason"
