#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What shared memory does is seen: counters of the machines' caches and of the
# switch's program, in status, top and /metrics. Arguments: the program, the
# example.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
CLIENT=$1

start_rack
serve a
serve b
both pass 20
# A program that stays, so that its machine has a page.
stored a store 5

# status: two caches, each of which has asked, was asked and gave back.
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'len(d["caches"]) == 2'
json "$TMP/out" 'all(c["faults"] and c["gets_write"] and c["invalidations"]
	and c["given_back"] for c in d["caches"])'
json "$TMP/out" 'any(c["cached_bytes"] for c in d["caches"])'
expect 0 "$AQUIFER" status
grep -q 'SHARED MEMORY' "$TMP/out" || fail "$(<"$TMP/out")"
grep -q 'shared memory of node m0: 32' "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" top --once --json
json "$TMP/out" 'len(d["caches"]) == 2 and
	all(c["faults_per_s"] >= 0 for c in d["caches"])'

# The lead hears of its switch every half second: until it has heard of all.
node='[n for n in d["nodes"] if n["name"] == "m0"][0]["shared"]["counters"]'
for _ in {1..200}; do
	expect 0 "$AQUIFER" status --json
	! json "$TMP/out" "all(${node}[k] for k in ('gets', 'invals', 'gives',
		'directory_used'))" >/dev/null 2>&1 || break
	sleep 0.1
done
json "$TMP/out" "all(${node}[k] for k in ('gets', 'invals', 'gives',
	'directory_used'))" || fail "$(<"$TMP/out")"
curl -s --unix-socket "$RUNDIR/m0.sock" \
	-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" \
	http://node/metrics >"$TMP/metrics" || fail "no metrics"
for name in gets_total invalidations_total given_back_total directory_used; do
	grep -q "^aquifer_shared_$name [1-9]" "$TMP/metrics" ||
		fail "no $name: $(grep shared "$TMP/metrics")"
done
for name in faults_total gets_write_total invalidations_total \
	given_back_total; do
	(($(grep -c "^aquifer_shared_cache_$name{pid=\"[0-9]*\"} [1-9]" \
		"$TMP/metrics") == 2)) ||
		fail "not two of $name: $(grep shared "$TMP/metrics")"
done
grep -q '^aquifer_shared_cache_bytes{pid="[0-9]*"} [1-9]' "$TMP/metrics" ||
	fail "$(grep shared "$TMP/metrics")"
# The directory's use goes down again when nobody has anything.
kill -KILL "$PID"
ends_with 137 "$PID"
kill -TERM "${SERVER[a]}" "${SERVER[b]}"
wait "${SERVER[a]}" "${SERVER[b]}"
for _ in {1..200}; do
	expect 0 "$AQUIFER" status --json
	! json "$TMP/out" "${node}['directory_used'] == 0" >/dev/null 2>&1 ||
		break
	sleep 0.1
done
json "$TMP/out" "${node}['directory_used'] == 0 and d['caches'] == []" ||
	fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" shared check
