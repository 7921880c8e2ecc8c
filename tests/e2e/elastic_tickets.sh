#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Forged, foreign and expired tickets at a memory node: each is refused and counted.
# Argument: the client.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
client=$1

printf '[rack]\ncontrol = c0\n[control c0]\nstore = sqlite:%s/c0.db\n[memory m0]\nsize = 64M\n' \
	"$TMP" >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
for name in a b; do
	until_ok sh -c "echo text | '$AQUIFER' file append /job/$name --block 64K"
done
expect 0 "$AQUIFER" tenant create other --token-file "$TMP/o.token"
echo text >"$TMP/text"
export AQUIFER_CONFIG=$TMP/rack.ini
as_other() {
	AQUIFER_TOKEN=$(<"$TMP/o.token") "$@"
}
until_ok as_other "$AQUIFER" file append /job/a "$TMP/text" --block 64K
expect 0 as_other "$client" show /job/a
read -r foreign index generation <"$TMP/out"
[[ ${#foreign} = 256 ]] || fail "no ticket: $foreign"

# The controller's own key, as its file has it.
read -r id seed < <(python3 - "$TMP/c0.db" <<'END'
import json, sqlite3, sys
rows = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True).execute(
    "SELECT key, value FROM row WHERE kind = 'rack' AND key LIKE 'ticket-key-%'")
key, value = sorted(rows, key=lambda r: int(r[0].split("-")[-1]))[0]
print(key.split("-")[-1], json.loads(value)["seed"])
END
)
expect 0 "$client" try /job/a /job/b "$id" "$seed" "$foreign" "$index" \
	"$generation"
[[ $(grep -c '^ok' "$TMP/out") = 19 ]] || fail "$(cat "$TMP/out" "$TMP/err")"
# Nothing but what the good tickets allowed has happened.
expect 0 "$AQUIFER" file cat /job/a
[[ $(<"$TMP/out") == $'text\nxx' ]] || fail "$(<"$TMP/out")"
expect 0 as_other "$AQUIFER" file cat /job/a
[[ $(<"$TMP/out") == text ]] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" down
