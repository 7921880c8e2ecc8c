#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two machines share memory by plain loads, stores and atomics: a word goes back
# and forth, additions add up, nobody sees what TSO forbids, and a cache that is
# too small loses nothing. Arguments: the program, the example,
# [rounds of litmus shapes [additions of each program]].
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
CLIENT=$1 EXAMPLE=$2 ROUNDS=${3:-32} ADDS=${4:-100000}

start_rack
serve a
serve b --cache 1M

both pass 50
both mp $((ROUNDS * 64))
both sb "$ROUNDS"
# Two programs of one machine, and one of the other.
pids=()
for machine in a a b; do
	on "$machine" add 0 "$ADDS" >"$TMP/add" 2>&1 &
	pids+=("$!")
	PIDS+=("$!")
done
for pid in "${pids[@]}"; do
	wait "$pid" || fail "add: $(<"$TMP/add")"
done
sum_is $((3 * ADDS)) a b
# 320 pages and a cache of 256; then some of them elsewhere.
on b churn 0 320 >"$TMP/churn" 2>&1 || fail "churn: $(<"$TMP/churn")"
on a churn 0 100 >"$TMP/churn" 2>&1 || fail "churn: $(<"$TMP/churn")"
# Something else is mapped over a page: that is the program's own affair.
on b over 0 $((3 * ADDS)) >"$TMP/over" 2>&1 || fail "over: $(<"$TMP/over")"
sum_is $((3 * ADDS)) a b
directory_is_sound
expect 0 "$AQUIFER" shared check
# The example, once on each machine.
expect 0 "$AQUIFER" shared create example 1M
for machine in a b a; do
	AQUIFER_NIC_ADDRESS=${ADDRESS[$machine]} expect 0 \
		env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} "$EXAMPLE"
done
[[ $(tail -n 1 "$TMP/out") == "visit 3" ]] || fail "$(<"$TMP/out")"
grep -q 'I was number 2' "$TMP/out" || fail "$(<"$TMP/out")"

# One server for each address.
AQUIFER_NIC_ADDRESS=127.0.0.2 expect 1 "$AQUIFER" shared serve
grep -q 'already' "$TMP/err" || fail "$(<"$TMP/err")"
# Where there is none the first program starts it, and it ends after the last.
ADDRESS[c]=127.0.0.9
on c add 0 5 >"$TMP/add" 2>&1 || fail "add: $(<"$TMP/add")"
# Pages that another machine has written come ahead, to read and to write; also
# where a program only reads them in a row.
on c stream 0 64 >"$TMP/stream" 2>&1 || fail "stream: $(<"$TMP/stream")"
on b churn 0 64 >"$TMP/churn" 2>&1 || fail "churn: $(<"$TMP/churn")"
on c fetch 0 64 >"$TMP/fetch" 2>&1 || fail "fetch: $(<"$TMP/fetch")"
machines_are 2
sum_is $((3 * ADDS + 5)) a
# A clean end gives everything back, so others find it.
on a add 0 7 >"$TMP/add" 2>&1 || fail "add: $(<"$TMP/add")"
kill -TERM "${SERVER[a]}"
wait "${SERVER[a]}" || fail "serve a: $(<"$TMP/serve.a.err")"
sum_is $((3 * ADDS + 12)) b
