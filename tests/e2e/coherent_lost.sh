#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a machine alone had when it died is SIGBUS for the others, until repair;
# what it had flushed is there then. And a cache server that stands still for
# longer than its lease: its programs get SIGBUS before others go on, and nothing
# that it does later counts. Each takes a lease. Arguments: the program.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
CLIENT=$1

start_rack
serve a
serve b
stored a flush 50
kill -KILL "${SERVER[a]}"
ends_with 135 "$PID"
until_lost '> 0'
code=0
on b show 0 0 >"$TMP/sum" 2>&1 || code=$?
((code == 135)) || fail "a lost page gave $code: $(<"$TMP/sum")"
grep -q 'cannot be had' "$TMP/serve.b.err" || fail "no word about the loss"
expect 0 "$AQUIFER" shared repair words
until_lost '== 0'
sum_is 50 b

# The machine joins again, with nothing.
serve a
on a add 0 1 >"$TMP/add" 2>&1 || fail "add: $(<"$TMP/add")"
sum_is 51 b a

stored a store 70
kill -STOP "${SERVER[a]}"
ends_with 135 "$PID"
until_lost '> 0'
expect 0 "$AQUIFER" shared repair words
kill -CONT "${SERVER[a]}"
ends_with 1 "${SERVER[a]}"
grep -q 'get SIGBUS' "$TMP/serve.a.err" || fail "$(<"$TMP/serve.a.err")"
sum_is 51 b
directory_is_sound

# One that ends when nobody uses it.
serve a --idle 200
ends_with 0 "${SERVER[a]}"
