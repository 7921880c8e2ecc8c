#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elastic key-value stores: commands, limits of keys and values, and blocks that
# are split when they are full and given back when they are nearly empty.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
client=$1

up_two
expect 0 "$AQUIFER" ns mkdir /job --keep

# prints WHAT COMMAND...: the command succeeds and prints just that.
prints() {
	local what=$1
	shift
	expect 0 "$@"
	[ "$(<"$TMP/out")" = "$what" ] || fail "$*: $(<"$TMP/out")"
}

expect 0 "$AQUIFER" ekv put /job/kv colour green --json
json "$TMP/out" 'd["version"] == 1' >/dev/null
prints green "$AQUIFER" ekv get /job/kv colour
expect 1 "$AQUIFER" ekv put /job/kv colour red --new
grep -q "has the key already" "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" ekv put /job/kv colour red --version 7
grep -q "another version" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" ekv put /job/kv colour red --version 1
prints red "$AQUIFER" ekv get /job/kv colour
prints 1 "$AQUIFER" ekv add /job/kv hits
prints 41 "$AQUIFER" ekv add /job/kv hits 40
prints 7 "$AQUIFER" ekv add /job/kv hits 7 --min
prints 9 "$AQUIFER" ekv add /job/kv hits 9 --max
prints 9 "$AQUIFER" ekv get /job/kv hits --number
expect 2 "$AQUIFER" ekv add /job/kv colour 1
grep -q "no number" "$TMP/err" || fail "$(<"$TMP/err")"
prints 6 "$AQUIFER" ekv add /job/kv colour dye --append
prints reddye "$AQUIFER" ekv get /job/kv colour
expect 0 sh -c "head -c 100000 /dev/zero | tr '\\0' z |
	'$AQUIFER' ekv put /job/kv large -"
expect 0 "$AQUIFER" ekv get /job/kv large
[ "$(tr -d 'z\n' <"$TMP/out" | wc -c),$(wc -c <"$TMP/out")" = 0,100001 ] ||
	fail "a large value came back different"
expect 0 "$AQUIFER" ekv scan /job/kv --json
json "$TMP/out" 'sorted(k["key"] for k in d["keys"]) ==
	["colour", "hits", "large"] and d["count"] == 3 and d["blocks"] == 1' \
	>/dev/null
expect 0 "$AQUIFER" ekv del /job/kv colour
expect 1 "$AQUIFER" ekv del /job/kv colour
expect 1 "$AQUIFER" ekv get /job/kv colour
grep -q "has no key 'colour'" "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" ekv get /job/none colour
grep -q "/job/none" "$TMP/err" || fail "$(<"$TMP/err")"
expect 2 "$AQUIFER" queue len /job/kv
grep -q "no queue but a ekv" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" ns ls /job
grep -q "ekv" "$TMP/out" || fail "no kind: $(<"$TMP/out")"
echo "ok: commands"

EKV_BLOCK=1048576 expect 0 "$client" edges /job/edges
echo "ok: keys of 64 KiB, values of a block"

# Over many blocks of 64 KiB each.
export EKV_BLOCK=65536
expect 0 "$client" fill /job/many a 1000 900
expect 0 "$client" fill /job/many large 10 30000
expect 0 "$client" check /job/many a 1000 900
expect 0 "$client" check /job/many large 10 30000
expect 0 "$AQUIFER" ekv scan /job/many --json
blocks=$(json "$TMP/out" 'd["blocks"] if d["count"] == 1010 else 0')
[ "$blocks" -ge 20 ] || fail "$blocks blocks for 1.2 MB"
echo "ok: $blocks blocks"

# And back: what is nearly empty is merged, and its memory is given back.
expect 0 "$client" drop /job/many large 0 10
expect 0 "$client" drop /job/many a 20 1000
expect 0 "$client" check /job/many a 20 900
now=$blocks
until [ "$now" -lt $((blocks / 2)) ]; do
	# Who deletes something sees to it.
	expect 0 "$client" fill /job/many b 10 100
	expect 0 "$client" drop /job/many b 0 10
	expect 0 "$AQUIFER" ekv scan /job/many --json
	now=$(json "$TMP/out" 'd["blocks"] if d["count"] == 20 else 9999')
done
echo "ok: $now blocks are left"
expect 0 "$AQUIFER" down
