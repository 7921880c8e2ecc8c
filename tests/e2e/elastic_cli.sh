#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elastic files and queues by their commands: what is written is read again, by
# any number of writers and over many blocks; queues are first in, first out.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

up_two

# A file of many blocks.
head -c 3000000 /dev/urandom >"$TMP/in"
expect 0 "$AQUIFER" file put /job/a "$TMP/in" --block 256K --json
json "$TMP/out" 'd["written"] == d["size"] == 3000000' >/dev/null
expect 0 "$AQUIFER" file get /job/a "$TMP/back"
cmp "$TMP/in" "$TMP/back" || fail "the file came back different"
expect 0 sh -c "'$AQUIFER' file cat /job/a | cmp - '$TMP/in'"
expect 1 "$AQUIFER" file put /job/a "$TMP/in"
grep -qi "exist\|already" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
echo "ok: put, get, cat"

# Several writers: each record is there once, and whole.
pids=()
for w in 1 2 3 4; do
	for i in 1 2 3 4 5; do
		printf '%0999d\n' "$w$i" | "$AQUIFER" file append /job/b \
			--block 64K || echo "append failed" >>"$TMP/bad"
	done &
	pids+=($!)
done
wait "${pids[@]}"
[ ! -e "$TMP/bad" ] || fail "$(<"$TMP/bad")"
expect 0 "$AQUIFER" file cat /job/b
[ "$(sort -u "$TMP/out" | wc -l)" = 20 ] || fail "records are missing"
[ "$(wc -c <"$TMP/out")" = 20000 ] || fail "records are not whole"
expect 0 "$AQUIFER" file append /job/b "$TMP/rack.ini" --seal
expect 1 "$AQUIFER" file append /job/b "$TMP/rack.ini"
grep -q "sealed" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
echo "ok: append, seal"

# A queue, with a bound and without.
expect 0 "$AQUIFER" queue put /job/q one --bound 2
expect 0 "$AQUIFER" queue put /job/q two
expect 1 "$AQUIFER" queue put /job/q three
grep -q "full" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
expect 0 "$AQUIFER" queue len /job/q
[ "$(<"$TMP/out")" = 2 ] || fail "length: $(<"$TMP/out")"
expect 0 "$AQUIFER" queue get /job/q --count 2
[ "$(tr '\n' ' ' <"$TMP/out")" = "one two " ] || fail "$(<"$TMP/out")"
expect 1 "$AQUIFER" queue get /job/q
grep -q "empty" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
echo "ok: queue"

# Over many blocks, while a consumer waits.
seq -f '%01000.0f' 1 600 >"$TMP/items"
expect 0 sh -c "'$AQUIFER' queue put /job/big --block 64K <'$TMP/items'"
expect 0 "$AQUIFER" queue get /job/big --count 600
cmp "$TMP/out" "$TMP/items" || fail "items changed or are not in order"
"$AQUIFER" queue get /job/big --wait 60000 >"$TMP/late" &
pid=$!
expect 0 "$AQUIFER" queue put /job/big late
wait "$pid" || fail "the waiting consumer failed"
[ "$(<"$TMP/late")" = late ] || fail "it got $(<"$TMP/late")"
echo "ok: many blocks"

expect 1 "$AQUIFER" queue get /job/none
grep -q "/job/none" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
expect 2 "$AQUIFER" file cat /job/q
grep -q "no file but a queue" "$TMP/err" || fail "$(<"$TMP/err")"
expect 2 "$AQUIFER" file cat nowhere
grep -q "begins with '/'" "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: errors"
expect 0 "$AQUIFER" down
