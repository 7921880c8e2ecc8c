#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Blocks that find no room in the pool lie in the spill tier, are as good as
# others, and come back to memory when there is room; what does not fit there
# either is refused. A tier that cannot be is refused at the start.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

client=$1
mkdir "$TMP/spill"
expect 1 "$AQUIFER" memory --name bad --size 16M --spill "$TMP/nothing:64M"
grep -q "nothing" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
expect 1 "$AQUIFER" memory --name bad --size 16M --spill "$TMP/spill:16T"
grep -q "spill tier" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
expect 2 "$AQUIFER" memory --name bad --size 16M --spill here
echo "ok: refused at the start"

cat >"$TMP/rack.ini" <<-END
	[rack]
	control = c0
	[memory m0]
	size = 16M
	spill = $TMP/spill:32M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up" and d["m0"]["spill"]["size"] == 32 << 20'
[ -z "$(ls -A "$TMP/spill")" ] || fail "the tier's file has a name"
expect 0 "$AQUIFER" ns mkdir /job --keep

# More than the pool has: a file, a queue and a store.
head -c 12000000 /dev/urandom >"$TMP/a"
head -c 14000000 /dev/urandom >"$TMP/b"
expect 0 "$AQUIFER" file put /job/a "$TMP/a" --block 512K
expect 0 "$AQUIFER" file put /job/b "$TMP/b" --block 512K
seq -f '%01000.0f' 1 600 >"$TMP/items"
expect 0 sh -c "'$AQUIFER' queue put /job/q --block 256K <'$TMP/items'"
for i in 1 2 3 4 5 6 7 8; do
	expect 0 "$AQUIFER" ekv put /job/kv "key$i" "value$i" --block 256K
done
until_node 'd["m0"]["spill"]["used"] > 8 << 20'
expect 0 "$AQUIFER" status
grep -q "spill tier of m0: .* of 32M" "$TMP/out" || fail "$(<"$TMP/out")"
echo "ok: spilled"

# All of it is as it was.
expect 0 sh -c "'$AQUIFER' file cat /job/a | cmp - '$TMP/a'"
expect 0 sh -c "'$AQUIFER' file cat /job/b | cmp - '$TMP/b'"
expect 0 "$AQUIFER" ekv get /job/kv key5
grep -q value5 "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 sh -c "'$AQUIFER' queue get /job/q --count 300 >'$TMP/got'"
head -300 "$TMP/items" | cmp - "$TMP/got" || fail "items came back different"
echo "ok: read"

# There is an end.
head -c 40000000 /dev/urandom >"$TMP/c"
expect 1 "$AQUIFER" file put /job/c "$TMP/c" --block 512K
grep -qi "no node\|full\|left\|room\|space" "$TMP/err" ||
	fail "no reason: $(<"$TMP/err")"
expect 0 "$AQUIFER" ns rm /job/c
echo "ok: full"

# Room in the pool: what lies on disk comes back while somebody uses it, who
# finds it at its new place.
mkfifo "$TMP/go"
"$client" reread /job/b <"$TMP/go" >"$TMP/reread" 2>&1 &
reader=$!
exec 5>"$TMP/go"
until grep -q once "$TMP/reread" || ! kill -0 "$reader" 2>/dev/null; do
	sleep 0.05
done
expect 0 "$AQUIFER" ns rm /job/a
until_node 'd["m0"]["spill"]["used"] <= 4 << 20'
echo go >&5
wait "$reader" || fail "it cannot be read any more: $(<"$TMP/reread")"
expect 0 sh -c "'$AQUIFER' file cat /job/b | cmp - '$TMP/b'"
expect 0 sh -c "'$AQUIFER' queue get /job/q --count 300 >'$TMP/got'"
tail -300 "$TMP/items" | cmp - "$TMP/got" || fail "items came back different"
expect 0 "$AQUIFER" ekv get /job/kv key7
grep -q value7 "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns rm /job --recursive
until_node 'd["m0"]["spill"]["used"] == 0 and d["m0"]["used"] < 1 << 20'
echo "ok: came back, and all is free"
