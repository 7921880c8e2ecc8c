#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tokens of a tenant that open less: one for reading, one for a folder, and both,
# at the controller, at nodes by a ticket, and at nodes by themselves.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
expect 0 "$AQUIFER" tenant create team --token-file "$TMP/team.token"
team=$(<"$TMP/team.token")
until_ok as "$team" "$AQUIFER" region create r 1M
expect 0 as "$team" "$AQUIFER" ns mkdir /job --keep
expect 0 as "$team" "$AQUIFER" ns mkdir /job/out
expect 0 as "$team" sh -c "echo mine | '$AQUIFER' file put /job/secret --block 64K"
expect 0 as "$team" sh -c "echo open | '$AQUIFER' file put /job/out/a --block 64K"
expect 0 as "$team" "$AQUIFER" queue put /job/out/q item --block 64K

expect 0 "$AQUIFER" tenant token team --read-only --token-file "$TMP/reader.token" --json
[[ $(json "$TMP/out" 'd["rights"]') == r ]] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" tenant token team --path /job/out --token-file "$TMP/below.token"
expect 0 "$AQUIFER" tenant token team --path /job/out --read-only --for 3600 \
	--token-file "$TMP/both.token"
expect 0 "$AQUIFER" tenant tokens team
grep -q '^1 .* r .* all$' "$TMP/out" || fail "$(<"$TMP/out")"
grep -q '^2 .* rw .*/job/out$' "$TMP/out" || fail "$(<"$TMP/out")"
reader=$(<"$TMP/reader.token") below=$(<"$TMP/below.token") both=$(<"$TMP/both.token")
expect 2 "$AQUIFER" tenant token --role node --read-only
expect 1 "$AQUIFER" tenant token team --path job
grep -q '"path"' "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: made"

# The node has heard of them when the first one is let in.
until_ok as "$reader" "$AQUIFER" file cat /job/secret
[[ $(<"$TMP/out") == mine ]] || fail "$(<"$TMP/out")"
for token in "$reader" "$below" "$both"; do
	expect 0 as "$token" "$AQUIFER" file cat /job/out/a
	[[ $(<"$TMP/out") == open ]] || fail "$(<"$TMP/out")"
done
for token in "$reader" "$both"; do
	expect 1 as "$token" sh -c "echo x | '$AQUIFER' file append /job/out/a"
	expect 1 as "$token" "$AQUIFER" queue get /job/out/q
	expect 1 as "$token" "$AQUIFER" ns mkdir /job/out/more
	expect 1 as "$token" "$AQUIFER" ns rm /job/out/a
	expect 1 as "$token" "$AQUIFER" ns renew /job
	expect 0 as "$token" "$AQUIFER" ns ls /job/out
done
expect 0 as "$team" "$AQUIFER" queue len /job/out/q
[[ $(<"$TMP/out") == 1 ]] || fail "a reader took an item"
expect 0 as "$below" sh -c "echo x | '$AQUIFER' file append /job/out/a"
expect 0 as "$below" "$AQUIFER" queue get /job/out/q
expect 0 as "$below" "$AQUIFER" ns mkdir /job/out/more
for token in "$below" "$both"; do
	expect 1 as "$token" "$AQUIFER" file cat /job/secret
	grep -q "not for this token" "$TMP/err" || fail "$(<"$TMP/err")"
	expect 1 as "$token" "$AQUIFER" ns ls /job
	expect 0 as "$token" "$AQUIFER" ns tree
	! grep -q secret "$TMP/out" || fail "$(<"$TMP/out")"
	expect 1 as "$token" "$AQUIFER" ns mkdir /job/else
done
expect 1 as "$below" "$AQUIFER" ns rm /job/out --recursive
echo "ok: names and blocks"

# Regions: for reading, and for who has a path not at all.
expect 0 as "$reader" "$AQUIFER" region stat r
expect 1 as "$reader" "$AQUIFER" region create s 1M
expect 1 as "$reader" "$AQUIFER" region delete r
expect 1 as "$below" "$AQUIFER" region stat r
expect 1 as "$below" "$AQUIFER" region create s 1M
expect 0 as "$team" "$AQUIFER" region stat r
echo "ok: regions"

# Taken back by its number, at the controller and at the node.
expect 0 "$AQUIFER" tenant revoke team 2
expect 1 as "$below" "$AQUIFER" file cat /job/out/a
expect 0 as "$both" "$AQUIFER" file cat /job/out/a
kill_node c0
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
until_ok as "$both" "$AQUIFER" file cat /job/out/a
expect 1 as "$both" "$AQUIFER" file cat /job/secret
expect 1 as "$below" "$AQUIFER" file cat /job/out/a
log=$TMP/state/$AQUIFER_RACK_NAME/c0.audit.jsonl
for token in "$TMP"/*.token; do
	! grep -qF "$(<"$token")" "$log" || fail "$token is in $log"
done
echo "ok: taken back, and a restart"
