#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images of files and queues in a folder: what expires is written there before its
# memory is given back, and comes back whole; a flipped bit is refused and named.
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

# What nobody renews any more.
head -c 3000000 /dev/urandom >"$TMP/in"
seq 1 500 >"$TMP/items"
expect 0 "$AQUIFER" ns mkdir /brief --lease 1000
expect 0 "$AQUIFER" file put /brief/a "$TMP/in" --block 256K
expect 0 sh -c "'$AQUIFER' queue put /brief/q --block 64K <'$TMP/items'"
until_name /brief/a 'd["state"] == "flushed"'
until_name /brief/q 'd["state"] == "flushed" and d["blocks"] == 0'
until_used "$idle"
expect 1 "$AQUIFER" file cat /brief/a
grep -q "its image is .*/brief+a@" "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" file append /brief/a "$TMP/in"
expect 0 "$AQUIFER" ns tree /brief
grep -q "flushed" "$TMP/out" || fail "$(<"$TMP/out")"
echo "ok: expired, with an image"

expect 0 "$AQUIFER" ns load /brief
# The lease is short, and the machine may be busy: who uses it holds it.
expect 0 sh -c "'$AQUIFER' ns hold /brief -- '$AQUIFER' file cat /brief/a --load |
	cmp - '$TMP/in'"
expect 0 "$AQUIFER" ns hold /brief -- "$AQUIFER" queue get /brief/q --load --count 500
cmp "$TMP/out" "$TMP/items" || fail "the queue came back different"
until_name /brief/a 'd["state"] == "flushed"'
echo "ok: loaded"

# A live one is flushed as it is, and goes on.
expect 0 "$AQUIFER" ns mkdir /kept --keep
expect 0 "$AQUIFER" file put /kept/a "$TMP/items" --block 64K
expect 0 "$AQUIFER" ns flush /kept --json
json "$TMP/out" 'len(d["objects"]) == 1' >/dev/null
expect 0 "$AQUIFER" ns flush /kept
expect 0 "$AQUIFER" file append /kept/a "$TMP/items"
[ "$("$AQUIFER" file cat /kept/a | wc -l)" = 1000 ] || fail "it did not go on"
# Of two images the second is left.
for _ in {1..600}; do
	[ "$(find "$TMP/vault" -name 'kept+a@*' | wc -l)" != 1 ] || break
	sleep 0.05
done
[ "$(find "$TMP/vault" -name 'kept+a@*' | wc -l)" = 1 ] || fail "two images"

# Nodes are started anew: lost, but for the image.
kill_node m0
kill_node m1
expect 0 "$AQUIFER" up
until_name /kept/a 'd["state"] == "lost"'
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
expect 1 "$AQUIFER" file cat /kept/a
until_ok "$AQUIFER" ns load /kept/a
expect 0 "$AQUIFER" file cat /kept/a
cmp "$TMP/out" "$TMP/items" || fail "another image"
echo "ok: flush while in use, load what was lost"

# One bit, in each object of the image in turn.
expect 0 "$AQUIFER" ns flush /kept/a
expect 0 "$AQUIFER" ns mkdir /bits --lease 500
expect 0 "$AQUIFER" file put /bits/a "$TMP/items" --block 64K
until_name /bits/a 'd["state"] == "flushed"'
dir=$(find "$TMP/vault" -name 'bits+a@*')
[ -s "$dir/manifest.json" ] || fail "no manifest: $(ls -R "$TMP/vault")"
for object in 0.blk manifest.json; do
	cp "$dir/$object" "$TMP/whole"
	python3 - "$dir/$object" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 4
open(sys.argv[1], "wb").write(data)
END
	expect 1 "$AQUIFER" ns load /bits/a
	grep -q "bits+a@.*$object" "$TMP/err" || fail "$object: $(<"$TMP/err")"
	expect 1 "$AQUIFER" file cat /bits/a --load
	grep -q "bits+a@.*$object" "$TMP/err" || fail "$object: $(<"$TMP/err")"
	cp "$TMP/whole" "$dir/$object"
done
head -c 200 "$TMP/whole" >"$dir/0.blk"
expect 1 "$AQUIFER" ns load /bits/a
rm "$dir/manifest.json"
expect 1 "$AQUIFER" ns load /bits/a
grep -q "manifest.json" "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: damaged images"

# The end of a name is the end of its image; drop means drop.
expect 0 "$AQUIFER" ns rm /bits --recursive
expect 0 "$AQUIFER" ns rm /brief --recursive
for _ in {1..600}; do
	[ -n "$(find "$TMP/vault" -name 'b*@*')" ] || break
	sleep 0.05
done
[ -z "$(find "$TMP/vault" -name 'b*@*')" ] || fail "$(ls -R "$TMP/vault")"
expect 0 "$AQUIFER" ns mkdir /none --lease 300 --on-expiry drop
expect 0 "$AQUIFER" file put /none/a "$TMP/items" --block 64K
until_fails "$AQUIFER" ns stat /none
[ -z "$(find "$TMP/vault" -name 'none*')" ] || fail "it was flushed"
expect 1 "$AQUIFER" ns mkdir /odd --on-expiry sell
grep -q "flush, drop or keep" "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: removed, dropped"
expect 0 "$AQUIFER" down
