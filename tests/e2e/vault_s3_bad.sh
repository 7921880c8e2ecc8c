#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# S3 as vault that answers 403, 500, half, or is full: what expires stays in memory,
# an alarm is seen, and all is well when it is back; no credential is written down
# anywhere. With the argument "slow" also one that does not answer.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/vault_lib.sh
source "$(dirname "$0")/vault_lib.sh"

echo well >"$TMP/mode"
python3 "$AQ_SOURCE/tests/e2e/s3_bad.py" "$TMP/mode" "$TMP/asked" >"$TMP/port" &
PIDS+=($!)
for _ in {1..600}; do
	[[ ! -s $TMP/port ]] || break
	sleep 0.05
done
port=$(<"$TMP/port")
secret=vErY/sEcReT+kEy
printf '[default]\naws_access_key_id = ID-OF-KEY\naws_secret_access_key = %s\n' \
	"$secret" >"$TMP/key"
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
vault = s3://bucket/pre.fix
vault_endpoint = http://127.0.0.1:$port
vault_region = eu-test
vault_key_file = $TMP/key
[memory m0]
size = 64M
END
# A key that others may read is refused.
chmod 0644 "$TMP/key"
expect 1 "$AQUIFER" up
grep -q "chmod 600" "$TMP/err" || fail "$(<"$TMP/err")"
chmod 0600 "$TMP/key"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
head -c 300000 /dev/urandom >"$TMP/in"

# say MODE: atomically, for a server that reads it at any time.
say() {
	echo "$1" >"$TMP/mode.new"
	mv "$TMP/mode.new" "$TMP/mode"
}

for mode in 403 500 507 half ${1:-}; do
	say "$mode"
	why="status $mode, Because"
	[[ $mode != half ]] || why="s3://bucket/pre.fix"
	[[ $mode != slow ]] || why="vault is slow"
	expect 0 "$AQUIFER" ns mkdir "/r$mode" --lease 300
	expect 0 "$AQUIFER" file put "/r$mode/a" "$TMP/in" --block 256K
	until_ok sh -c "'$AQUIFER' status | grep 'does not take 1 file.*$why'"
	expect 0 "$AQUIFER" ns stat "/r$mode/a" --json
	json "$TMP/out" 'd["state"] == "flushing" and d["used"] >= 300000' >/dev/null
	say well
	until_name "/r$mode/a" 'd["state"] == "flushed"'
	until_ok sh -c "! '$AQUIFER' status | grep 'does not take'"
	expect 0 sh -c "'$AQUIFER' ns hold /r$mode -- '$AQUIFER' file cat /r$mode/a \
		--load | cmp - '$TMP/in'"
	# A load that fails says why, and the next one does not.
	until_name "/r$mode/a" 'd["state"] == "flushed"'
	echo "ok: $mode"
done
say 403
expect 1 "$AQUIFER" ns load /r403/a
grep -q "status 403" "$TMP/err" || fail "$(<"$TMP/err")"
say half
expect 1 "$AQUIFER" ns load /r403/a
say well
expect 0 sh -c "'$AQUIFER' ns hold /r403 -- '$AQUIFER' file cat /r403/a --load |
	cmp - '$TMP/in'"
# A name that is removed takes its image along.
expect 0 "$AQUIFER" ns rm /r500 --recursive
for _ in {1..600}; do
	! grep -q 'DELETE .*r500.*0.blk well' "$TMP/asked" || break
	sleep 0.05
done
grep -q 'DELETE .*r500.*manifest.json well' "$TMP/asked" || fail "$(<"$TMP/asked")"

# The secret is in its file alone, and in no controller's answer to a user.
for what in "status --json" "ns stat /r403/a --json" "info" "control dump -"; do
	# shellcheck disable=SC2086 # words
	"$AQUIFER" $what >"$TMP/said" 2>&1 || true
	! grep -qF "$secret" "$TMP/said" || fail "$what shows the secret"
done
expect 0 "$AQUIFER" down
! grep -rlF "$secret" "$TMP" --exclude=key || fail "the secret is written down"
