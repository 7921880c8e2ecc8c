#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A vault that is full or refuses: what expires stays in memory, an alarm is seen,
# and all is well when the vault is back; also where the controller is killed in
# between.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/vault_lib.sh
source "$(dirname "$0")/vault_lib.sh"

[[ -n ${AQ_OWN_NET:-} ]] || skip "a file system of its own needs a mount namespace"
vault=/dev/shm/vault # of this namespace alone
mkdir "$vault"
mount -t tmpfs -o size=128k tmpfs "$vault"
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
vault = $vault
[memory m0]
size = 64M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
head -c 1000000 /dev/urandom >"$TMP/in"

# Full.
expect 0 "$AQUIFER" ns mkdir /brief --lease 300
expect 0 "$AQUIFER" file put /brief/a "$TMP/in" --block 256K
until_name /brief/a 'd["state"] == "flushing" and "No space" in d.get("why", "")'
json "$TMP/name" 'd["used"] >= 1000000 and d["blocks"] > 0' >/dev/null
until_ok sh -c "'$AQUIFER' status | grep 'the vault does not take 1 file.*No space'"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["controller"]["vault"]["failing"] == 1' >/dev/null
expect 1 "$AQUIFER" file cat /brief/a
# A flush that somebody asks for fails at once, and harms nothing.
expect 0 "$AQUIFER" ns mkdir /kept --keep
expect 0 "$AQUIFER" file put /kept/a "$TMP/in" --block 256K
expect 1 "$AQUIFER" ns flush /kept/a
grep -q "No space" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 sh -c "'$AQUIFER' file cat /kept/a | cmp - '$TMP/in'"
expect 0 "$AQUIFER" ns rm /kept --recursive
# Its leader dies; the next one knows what has to be done.
kill_node c0
expect 0 "$AQUIFER" up
until_name /brief/a 'd["state"] == "flushing" and "No space" in d.get("why", "")'
mount -o remount,size=64m "$vault"
until_name /brief/a 'd["state"] == "flushed"'
until_ok sh -c "! '$AQUIFER' status | grep 'does not take'"
echo "ok: full"

# Refuses: the node is no superuser any more.
chmod 0500 "$vault" "$vault"/*
expect 0 "$AQUIFER" ns mkdir /second --lease 300
expect 0 "$AQUIFER" queue put /second/q one
until_name /second/q 'd["state"] == "flushing" and "denied" in d.get("why", "")'
chmod 0700 "$vault" "$vault"/*
until_name /second/q 'd["state"] == "flushed"'
expect 0 "$AQUIFER" ns hold /second -- "$AQUIFER" queue get /second/q --load
[ "$(<"$TMP/out")" = one ] || fail "$(<"$TMP/out")"
expect 0 sh -c "'$AQUIFER' ns hold /brief -- '$AQUIFER' file cat /brief/a --load |
	cmp - '$TMP/in'"
echo "ok: refuses"

# Who has no vault says so.
expect 0 "$AQUIFER" down
sed -i '/^vault/d' "$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 1 "$AQUIFER" ns mkdir /odd --on-expiry flush
grep -q "no vault" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" down
