#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tokens that rack.ini gives, the same on two machines; and a rack that has its
# tokens in the runtime directory only, as in earlier releases.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

port=$(free_port)
tokens="token_file = $TMP/own/token
admin_token_file = $TMP/own/admin-token"
printf '[rack]\n%s\n[memory m0]\nsize = 64M\nlisten = 127.0.0.1:%s\n' \
	"$tokens" "$port" >"$TMP/rack.ini"
mkdir "$TMP/own"

# A file that is missing is named, with the command that makes it.
expect 1 "$AQUIFER" up
grep -q "aquifer token new" "$TMP/err" || fail "no file: $(<"$TMP/err")"
expect 0 "$AQUIFER" token new
expect 0 "$AQUIFER" token new --admin
[[ $(stat -c %a "$TMP/own/token" "$TMP/own/admin-token" | sort -u) == 600 ]] ||
	fail "open files"
expect 0 "$AQUIFER" up
[[ $("$AQUIFER" token show) == "$(<"$TMP/own/token")" ]] || fail "another token"
expect 0 "$AQUIFER" token show --json
json "$TMP/out" 'd["source"].endswith("/own/token")' >/dev/null

# Another machine: its own runtime directory, and copies of the files.
mkdir "$TMP/theirs"
cp -p "$TMP/own"/* "$TMP/theirs"
printf '[rack]\n%s\n[node m0]\naddress = 127.0.0.1:%s\n' \
	"${tokens//own/theirs}" "$port" >"$TMP/client.ini"
elsewhere() {
	AQUIFER_RUNDIR=$TMP/elsewhere AQUIFER_CONFIG=$TMP/client.ini \
		AQUIFER_NIC_ADDRESS=127.0.0.2 "$@"
}
expect 0 elsewhere "$AQUIFER" region create r 2M
elsewhere client basic r || fail "basic"
expect 0 elsewhere "$AQUIFER" tenant ls
# A file that others can read is not believed by anybody.
chmod 640 "$TMP/theirs/token"
expect 1 elsewhere "$AQUIFER" region list
grep -q "chmod 600" "$TMP/err" || fail "an open file: $(<"$TMP/err")"
chmod 600 "$TMP/theirs/token"

# Replaced: here at once. Where a machine's file has the old one, it is said.
old=$("$AQUIFER" token show)
expect 0 "$AQUIFER" token new --force
[[ $(<"$TMP/own/token") != "$old" ]] || fail "the file has the old one"
expect 0 "$AQUIFER" region list
expect 1 elsewhere "$AQUIFER" region list
expect 1 elsewhere "$AQUIFER" token new --force
grep -q "does not hold the new token yet" "$TMP/err" || fail "$(<"$TMP/err")"
[[ $(<"$TMP/theirs/token") == "$old" ]] || fail "the old one is not put back"
cp -p "$TMP/own/token" "$TMP/theirs/token"
expect 0 elsewhere "$AQUIFER" region list
# In the daemon's log there is none.
! grep -qs -e "$old" -e "$(<"$TMP/own/token")" "$RUNDIR"/*.log ||
	fail "a token is in a log"
chmod 644 "$TMP/own/admin-token"
expect 0 "$AQUIFER" doctor --json
json "$TMP/out" 'any(c["name"] == "secret-files" and "own/admin-token" in
    c["found"] for c in d["checks"])' >/dev/null || fail "doctor sees nothing"
chmod 600 "$TMP/own/admin-token"
expect 0 "$AQUIFER" down
echo "ok: given files"

# An earlier release: tokens in the runtime directory, none in the state.
printf '[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
rm -rf "$TMP/state"
old=$(printf '%064d' 7)
(umask 077 && echo "$old" >"$RUNDIR/token")
expect 0 "$AQUIFER" up
expect 0 env AQUIFER_TOKEN="$old" "$AQUIFER" region list
expect 0 "$AQUIFER" down
rm -r "$RUNDIR"
expect 0 "$AQUIFER" up
[[ $("$AQUIFER" token show) == "$old" ]] || fail "it was not taken over"
expect 0 "$AQUIFER" down
# While no node runs, too.
expect 0 "$AQUIFER" token new
[[ $("$AQUIFER" token show) != "$old" ]] || fail "not replaced"
new=$("$AQUIFER" token show)
rm -r "$RUNDIR"
[[ $("$AQUIFER" token show) == "$new" ]] || fail "show of a rack that is down"
# A folder of one's own for the state.
mkdir "$TMP/kept"
printf '[rack]\nstate_dir = %s\n[memory m0]\nsize = 64M\n' "$TMP/kept" \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
[[ -e $TMP/kept/$AQUIFER_RACK_NAME/token ]] || fail "rack.state_dir is not used"
expect 0 "$AQUIFER" down
echo "ok: taken over"
