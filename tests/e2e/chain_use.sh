#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Objects with copies: they are watched, their queues are waited for, images of
# them come back with copies, and a node that is drained gives its copies to
# another one, of which the command tells.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/vault_lib.sh
source "$(dirname "$0")/vault_lib.sh"

up_with_folder
expect 0 "$AQUIFER" ns mkdir /k --keep --copies 2

# whole PATH: waits until each block has two copies.
whole() {
	until_name "$1" '(d["copies_now"] == 2 and d["blocks"] > 0 and
		all("(" not in c for c in d["chains"]))'
}

# Also before it has a block.
expect 0 "$AQUIFER" queue put /k/q - </dev/null
"$AQUIFER" ns watch /k/q --events put --count 1 --json >"$TMP/told" 2>"$TMP/told.err" &
watcher=$!
PIDS+=("$watcher")
until grep -q "^watching" "$TMP/told.err"; do
	kill -0 "$watcher" || fail "$(<"$TMP/told.err")"
	sleep 0.02
done
"$AQUIFER" queue get /k/q --wait 100000 >"$TMP/got" 2>"$TMP/got.err" &
getter=$!
PIDS+=("$getter")
expect 0 "$AQUIFER" queue put /k/q hello
wait "$getter" || fail "$(<"$TMP/got.err")"
[ "$(<"$TMP/got")" = hello ] || fail "$(<"$TMP/got")"
wait "$watcher" || fail "$(<"$TMP/told.err")"
json "$TMP/told" 'd["item"] == "hello"' >/dev/null
echo "ok: waited for and watched"

head -c 15000 /dev/zero | tr '\0' v >"$TMP/value"
for i in 1 2 3 4 5 6 7 8; do
	"$AQUIFER" ekv put /k/kv "key-$i" - --block 64K <"$TMP/value" >/dev/null ||
		fail "put $i"
done
until_name /k/kv 'd["blocks"] > 1'
expect 0 "$AQUIFER" ns flush /k/kv
expect 0 "$AQUIFER" ekv del /k/kv key-3
expect 0 "$AQUIFER" ns load /k/kv --back
expect 0 "$AQUIFER" ekv scan /k/kv
[ "$(grep -c '^key-' "$TMP/out")" = 8 ] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ekv get /k/kv key-3
cmp -n 15000 "$TMP/out" "$TMP/value" || fail "another value"
whole /k/kv
echo "ok: from the vault, with copies"

printf '[memory m2]\nsize = 64M\n' >>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m2"]["state"] == "up"'
expect 0 "$AQUIFER" file put /k/f "$TMP/value"
expect 0 "$AQUIFER" node drain m0 --json
json "$TMP/out" '{m.get("ekv") for m in d["moved"]} >= {"/k/kv"} and not any(
	s["name"].startswith("/k/") for s in d["stays"])' >/dev/null
for name in kv q f; do
	whole "/k/$name"
done
expect 0 "$AQUIFER" ns stat /k/kv --json
json "$TMP/out" 'not any("m0" in c for c in d["chains"])' >/dev/null
expect 0 "$AQUIFER" ekv get /k/kv key-3
cmp -n 15000 "$TMP/out" "$TMP/value" || fail "another value"
expect 0 "$AQUIFER" file cat /k/f
cmp "$TMP/out" "$TMP/value" || fail "another file"
echo "ok: drained"
expect 0 "$AQUIFER" down
