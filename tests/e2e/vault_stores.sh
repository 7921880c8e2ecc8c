#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images of key-value stores: an expired one comes back with all its keys, over
# as many blocks as it had; one is flushed while it splits; what is there can
# become what it was.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/vault_lib.sh
source "$(dirname "$0")/vault_lib.sh"

up_with_folder
idle=$(used)
head -c 15000 /dev/zero | tr '\0' v >"$TMP/value"

# fill PATH FIRST LAST: keys of 15 KB each in blocks of 64K.
fill() {
	for ((i = $2; i <= $3; i++)); do
		"$AQUIFER" ekv put "$1" "key-$i" - --block 64K <"$TMP/value" >/dev/null ||
			fail "put $i"
	done
}

# keys PATH: how many it has.
keys() {
	"$AQUIFER" ekv scan "$@" | grep -c '^key-'
}

# Nobody renews it any more.
expect 0 "$AQUIFER" ns mkdir /brief --lease 1000
expect 0 "$AQUIFER" ns hold /brief -- sh -c "
	for i in 1 2 3 4 5 6 7 8 9 10; do
		'$AQUIFER' ekv put /brief/kv key-\$i - --block 64K <'$TMP/value' || exit 1
	done
	'$AQUIFER' ekv add /brief/kv hits 41"
until_name /brief/kv 'd["state"] == "flushed" and d["blocks"] == 0'
until_used "$idle"
dir=$(find "$TMP/vault" -name 'brief+kv@*')
[ "$(find "$dir" -name '*.blk' | wc -l)" -ge 3 ] || fail "$(ls "$dir")"
expect 1 "$AQUIFER" ekv get /brief/kv hits
expect 0 "$AQUIFER" ns hold /brief -- "$AQUIFER" ekv add /brief/kv hits 1 --load
[ "$(<"$TMP/out")" = 42 ] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns hold /brief -- "$AQUIFER" ekv scan /brief/kv --load
[ "$(grep -c '^key-' "$TMP/out")" = 10 ] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns hold /brief -- "$AQUIFER" ekv get /brief/kv key-7 --load
cmp -n 15000 "$TMP/out" "$TMP/value" || fail "another value"
echo "ok: expired and loaded"

# Flushed again and again while its blocks are split; the first image, whenever
# it was complete, has the keys that were there before.
expect 0 "$AQUIFER" ns mkdir /kept --keep
fill /kept/kv 1 3
fill /kept/kv 4 16 &
filler=$!
for _ in 1 2 3 4; do
	expect 0 "$AQUIFER" ns flush /kept/kv
done
wait "$filler" || fail "the store could not be changed meanwhile"
[ "$(keys /kept/kv)" = 16 ] || fail "$(keys /kept/kv) keys"
expect 0 "$AQUIFER" ns load /kept/kv --back
n=$(keys /kept/kv)
((n >= 3 && n <= 16)) || fail "$n keys"
for i in 1 2 3; do
	expect 0 "$AQUIFER" ekv get /kept/kv key-$i
	cmp -n 15000 "$TMP/out" "$TMP/value" || fail "another value"
done
fill /kept/kv 1 20
[ "$(keys /kept/kv)" = 20 ] || fail "it does not grow any more"
echo "ok: flushed while it was split"

# Back to a checkpoint; lost nodes; a damaged block is named.
expect 0 "$AQUIFER" ekv put /kept/kv state good
expect 0 "$AQUIFER" ns flush /kept/kv
expect 0 "$AQUIFER" ekv put /kept/kv state bad
expect 0 "$AQUIFER" ns load /kept/kv
expect 0 "$AQUIFER" ekv get /kept/kv state
[ "$(<"$TMP/out")" = bad ] || fail "a plain load has changed what is there"
expect 0 "$AQUIFER" ns load /kept/kv --back
expect 0 "$AQUIFER" ekv get /kept/kv state
[ "$(<"$TMP/out")" = good ] || fail "$(<"$TMP/out")"
kill_node m0
kill_node m1
expect 0 "$AQUIFER" up
until_name /kept/kv 'd["state"] == "lost"'
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
until_ok "$AQUIFER" ns load /kept/kv
[ "$(keys /kept/kv)" = 20 ] || fail "$(keys /kept/kv) keys"
dir=$(find "$TMP/vault" -name 'kept+kv@*')
blk=$(find "$dir" -name '*.blk' | head -n 1)
python3 - "$blk" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-1] ^= 1
open(sys.argv[1], "wb").write(data)
END
expect 1 "$AQUIFER" ns load /kept/kv --back
grep -q "kept+kv@.*${blk##*/}" "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: back, lost, damaged"
expect 0 "$AQUIFER" down
