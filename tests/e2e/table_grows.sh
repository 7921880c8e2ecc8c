#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small table takes little memory, and grows by itself far beyond its first
# size while other programs work on it and one that fills it is killed. A maximum
# is kept, and a table that shall not grow does not.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
kv=$1

printf '[memory m0]\nsize = 128M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" kv create t 300 --json
json "$TMP/out" 'd["size"] < 6 << 20 and d["grow"] == "auto"' >/dev/null

# Programs that put, read and delete keys of their own, and check them.
start() {
	: >"$TMP/lines.$1"
	"$kv" work t "$1" "$2" >"$TMP/lines.$1" 2>"$TMP/errors.$1" &
	PIDS+=("$!")
}
start 1 8
first=$!
start 2 8
second=$!
wait_line "$TMP/lines.2" 1 >/dev/null || fail "$(cat "$TMP/errors.2")"

# generation: how often it has grown.
generation() {
	"$AQUIFER" kv list --json >"$TMP/list" || fail "no list"
	json "$TMP/list" 'd["tables"][0]["generation"] +
		d["tables"][0]["resizing"]'
}
# On a busy machine copying takes longer than a change waits for it by itself.
patient=(--timeout 120000)
"$AQUIFER" kv fill t --count 100000 "${patient[@]}" >"$TMP/fill" 2>&1 &
fill=$!
PIDS+=("$fill")
for _ in {1..300}; do
	(($(generation) < 2)) || break
	kill -0 "$fill" 2>/dev/null || break
	sleep 0.05
done
kill -KILL "$fill" || fail "it ended: $(cat "$TMP/fill")"
wait "$fill" 2>/dev/null || true
wait "$first" || fail "the first: $(cat "$TMP/errors.1")"
wait "$second" || fail "the second: $(cat "$TMP/errors.2")"
expect 0 "$AQUIFER" kv fill t --count 3000 --json "${patient[@]}"
json "$TMP/out" 'not d["is_full"]' >/dev/null
expect 0 "$AQUIFER" kv scan t --keys
[[ $(grep -c '^key:0000000[0-2]' "$TMP/out") -ge 3000 ]] || fail "$(wc -l <"$TMP/out") keys"
expect 0 "$AQUIFER" kv repair t
expect 0 "$AQUIFER" kv check t --json
json "$TMP/out" 'd["good"]' >/dev/null
expect 0 "$AQUIFER" kv stat t --json
json "$TMP/out" 'd["capacity"] > 3000 and d["generation"] >= 2
    and not d["resizing"]' >/dev/null

# A value that is larger than all the memory that there was for values.
head -c 9000000 /dev/urandom >"$TMP/large"
"$AQUIFER" kv put t large - "${patient[@]}" <"$TMP/large" || fail "a large value"
"$AQUIFER" kv get t large | cmp - "$TMP/large" || fail "another large value"
expect 0 "$AQUIFER" kv drop t

# Up to a maximum, and not at all.
expect 0 "$AQUIFER" kv create m 300 --extents 1M --max 1400K
expect 0 "$AQUIFER" kv fill m --count 5000 --json "${patient[@]}"
json "$TMP/out" 'd["is_full"] and 1000 < d["stored"] < 5000' >/dev/null
! "$AQUIFER" kv put m large - <"$TMP/large" 2>"$TMP/err" || fail "too large"
grep -q "maximum of 1400K" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" kv check m
expect 0 "$AQUIFER" kv create f 300 --extents 1M --grow no
expect 0 "$AQUIFER" kv fill f --count 1000 --json
json "$TMP/out" 'd["is_full"] and d["stored"] <= 304' >/dev/null
expect 0 "$AQUIFER" kv list --json
json "$TMP/out" '[(t["grow"], t["max"]) for t in d["tables"]] ==
    [("no", 0), ("auto", 1400 << 10)]
    and d["tables"][1]["size"] <= 1450 << 10' >/dev/null
expect 2 "$AQUIFER" kv create g 300 --grow maybe
