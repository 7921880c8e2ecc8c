#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Indexes of both kinds in a rack, by their commands: every verb, what they
# refuse, round trips, and what is left when clients are killed.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 128M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" index create t --memory 16M --failure 200 --json
json "$TMP/out" 'd["kind"] == "tree" and d["locks_on_device"]
    and d["node_bytes"] == 1024 and d["entries_per_leaf"] >= 8' >/dev/null
expect 1 "$AQUIFER" index create t
expect 1 "$AQUIFER" index create t --kind versions --room 10
grep -q "already" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" index put t b two
expect 0 "$AQUIFER" index put t a one
expect 0 "$AQUIFER" index put t ab between
expect 0 "$AQUIFER" index get t a
[[ $(cat "$TMP/out") == one ]] || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" index scan t
[[ $(cut -f1 "$TMP/out" | tr '\n' ' ') == "a ab b " ]] || fail "order"
expect 0 "$AQUIFER" index del t b
expect 1 "$AQUIFER" index del t b
grep -q "no such key" "$TMP/err" || fail "$(cat "$TMP/err")"

# Two threads: a read is one round trip, a write two, splits included a bit
# more.
expect 0 "$AQUIFER" index fill t --count 4000 --threads 2 --json
json "$TMP/out" 'd["stored"] == 4000 and d["trips_per_get"] < 1.1
    and d["trips_per_put"] < 3 and d["splits"] > 300' >/dev/null
expect 0 "$AQUIFER" index scan t --from key:000000000100 \
	--to key:000000000200 --keys
[[ $(wc -l <"$TMP/out") == 100 ]] || fail "scan: $(wc -l <"$TMP/out")"
sort -c "$TMP/out" || fail "a scan in no order"
expect 0 "$AQUIFER" index scan t --from key --count 7 --json
[[ $(wc -l <"$TMP/out") == 7 ]] || fail "count: $(wc -l <"$TMP/out")"

# Killed in the middle of it: the next ones take over and find it whole.
for i in 1 2; do
	"$AQUIFER" index fill t --count 200000 --threads 2 &
	pid=$!
	sleep "0.$((i * 13))"
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || true
	expect 0 "$AQUIFER" index fill t --count 300
	expect 0 "$AQUIFER" index check t --json
	json "$TMP/out" 'd["good"] and d["keys"] >= 4002' >/dev/null
done

expect 0 "$AQUIFER" index create v --kind versions --room 2000
expect 0 "$AQUIFER" index put v 7 seven
expect 0 "$AQUIFER" index get v 7
[[ $(cat "$TMP/out") == seven ]] || fail "$(cat "$TMP/out")"
expect 2 "$AQUIFER" index put v seven 7
expect 0 "$AQUIFER" index fill v --count 1000 --threads 2 --json
json "$TMP/out" 'd["stored"] == 1000' >/dev/null
expect 0 "$AQUIFER" index del v 7
expect 1 "$AQUIFER" index get v 7
expect 1 "$AQUIFER" index scan v
grep -q "order" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" index check v --json
json "$TMP/out" 'd["good"] and d["keys"] == 999' >/dev/null
expect 0 "$AQUIFER" index stat v
expect 0 "$AQUIFER" index drop v
expect 1 "$AQUIFER" index stat v
expect 0 "$AQUIFER" index drop t
expect 1 "$AQUIFER" index drop t

expect 2 "$AQUIFER" index get t
expect 2 "$AQUIFER" index create x --kind odd
expect 1 "$AQUIFER" index create x --node-bytes 100
expect 1 "$AQUIFER" index create x --key 65
expect 1 "$AQUIFER" index create x --kind versions
# A region that is no index.
expect 0 "$AQUIFER" region create it-fake 1M
expect 0 "$AQUIFER" region create il-fake 4K
expect 1 "$AQUIFER" index stat fake
grep -q "ordered index" "$TMP/err" || fail "$(cat "$TMP/err")"
