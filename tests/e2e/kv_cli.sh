#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A table in a rack, by its commands: every verb, and what they refuse.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 128M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" kv create t 2000 --entry 32 --extents 8M --json
json "$TMP/out" 'd["capacity"] == 2000 and d["locks_on_device"]
    and d["masked_atomics"] and d["inline_bytes"] == 24' >/dev/null
expect 1 "$AQUIFER" kv create t 2000
expect 0 "$AQUIFER" kv put t hello world
expect 0 "$AQUIFER" kv get t hello
[[ $(cat "$TMP/out") == world ]] || fail "$(cat "$TMP/out")"
head -c 3000000 /dev/urandom >"$TMP/large"
"$AQUIFER" kv put t large - <"$TMP/large" || fail "put from standard input"
"$AQUIFER" kv get t large | cmp - "$TMP/large" || fail "a large value"
expect 0 "$AQUIFER" kv put t gone soon --ttl 1
sleep 0.05
expect 1 "$AQUIFER" kv get t gone
expect 0 "$AQUIFER" kv del t hello
expect 1 "$AQUIFER" kv del t hello
grep -q "no such key" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" kv fill t --count 1000 --json
json "$TMP/out" 'd["inserted"] == 1000 and d["trips_per_insert"] < 2.5' >/dev/null
expect 0 "$AQUIFER" kv scan t --keys
[[ $(wc -l <"$TMP/out") == 1001 ]] || fail "scan: $(wc -l <"$TMP/out")"
expect 0 "$AQUIFER" kv stat t --json
json "$TMP/out" 'd["keys"] == 1002' >/dev/null
expect 0 "$AQUIFER" kv check t --json
json "$TMP/out" 'd["good"] and d["count_error"] == 0' >/dev/null
expect 0 "$AQUIFER" kv create w 500 --word-locks --host-locks --extents 1M
expect 0 "$AQUIFER" kv fill w --count 400
expect 0 "$AQUIFER" kv check w
expect 0 "$AQUIFER" kv drop w
expect 1 "$AQUIFER" kv stat w
expect 2 "$AQUIFER" kv get t
expect 2 "$AQUIFER" kv create x 100 --hash odd
expect 1 "$AQUIFER" kv create x 100 --entry 33
# A region that is no table, and one that is damaged.
expect 1 "$AQUIFER" kv stat nothing
expect 0 "$AQUIFER" region create kv-0000000-fake 1M
expect 0 "$AQUIFER" region create kl-0000000-fake 4K
expect 1 "$AQUIFER" kv stat fake
grep -q "key-value table" "$TMP/err" || fail "$(cat "$TMP/err")"
