#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names of jobs and folders: made, listed, moved and removed; a lease that is held
# by a command lives as long as that, and no longer; kill -9 of the controller
# loses no name and ends no lease.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

expect 1 "$AQUIFER" ns ls
grep -q "need a controller" "$TMP/err" || fail "$(<"$TMP/err")"
printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up

# The paper's plan, and some that are none.
plan='{"t1":[],"t2":[],"t4":[],"t3":["t1","t2"],"t5":["t4"],"t6":["t4"],
	"t7":["t3","t5","t6"],"t8":["t7"],"t9":["t8"]}'
echo "$plan" >"$TMP/plan.json"
expect 0 "$AQUIFER" ns mkdir /wc --plan "$TMP/plan.json" --lease 60000
expect 1 "$AQUIFER" ns mkdir /wc --plan "$TMP/plan.json"
grep -q "/wc already" "$TMP/err" || fail "$(<"$TMP/err")"
echo '{"a":["b"],"b":["a"]}' >"$TMP/cycle.json"
expect 1 "$AQUIFER" ns mkdir /cycle --plan "$TMP/cycle.json"
grep -q "cycle" "$TMP/err" || fail "$(<"$TMP/err")"
echo '{"a":[' >"$TMP/half.json"
expect 1 "$AQUIFER" ns mkdir /half --plan "$TMP/half.json"
for bad in '/a b' '/../x' '/x//y' '/.x'; do
	"$AQUIFER" ns mkdir "$bad" >"$TMP/out" 2>"$TMP/err" && fail "made $bad"
	grep -q "letters" "$TMP/err" || fail "$bad: $(<"$TMP/err")"
done
expect 0 "$AQUIFER" ns stat /wc/t4/t6/t7/t8/t9 --json
nine=$(json "$TMP/out" 'd["id"]')
expect 0 "$AQUIFER" ns stat /wc/t2/t3/t7/t8/t9 --json
[[ $(json "$TMP/out" 'd["id"]') == "$nine" ]] || fail "another walk, another task"
expect 1 "$AQUIFER" ns stat /wc/t1/t5
expect 0 "$AQUIFER" ns mkdir /wc/t9/t10 --after t4
expect 0 "$AQUIFER" ns tree /wc
grep -q "t7/  task, lease live .*, after t3, t5, t6" "$TMP/out" ||
	fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns tree /wc/t3
grep -q "^  t7/" "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns tree /wc/t5
grep -q "^  t7/" "$TMP/out" || fail "$(<"$TMP/out")"
echo "ok: a plan and its walks"

expect 0 "$AQUIFER" ns mkdir /tmp/a/b --parents
expect 0 "$AQUIFER" ns mkdir /tmp/a/b --parents
expect 1 "$AQUIFER" ns mkdir /tmp/a/b
expect 0 "$AQUIFER" ns mv /tmp/a/b /tmp/c
expect 0 "$AQUIFER" ns mv /tmp /scratch
expect 0 "$AQUIFER" ns ls /scratch --json
json "$TMP/out" 'sorted(e["path"] for e in d["entries"]) ==
	["/scratch/a", "/scratch/c"]' >/dev/null
expect 1 "$AQUIFER" ns rm /scratch
expect 0 "$AQUIFER" ns rm /scratch --recursive
expect 1 "$AQUIFER" ns stat /scratch
echo "ok: folders"

# Another tenant sees none of it.
expect 0 "$AQUIFER" tenant create other --token-file "$TMP/o.token"
expect 0 as "$(<"$TMP/o.token")" "$AQUIFER" ns ls --json
json "$TMP/out" 'd["entries"] == []' >/dev/null
expect 1 as "$(<"$TMP/o.token")" "$AQUIFER" ns stat /wc
echo "ok: tenants"

# Held: the time that is left grows again and again. Not held: it ends.
cat >"$TMP/grows" <<'END'
last=0 grown=0
while ((grown < 2)); do
	"$AQUIFER" ns stat /held --json >"$TMP/held" || exit 9
	left=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["lease"]["left_ms"])' "$TMP/held")
	((left <= last)) || grown=$((grown + 1))
	last=$left
done
exit 7
END
export TMP
expect 0 "$AQUIFER" ns mkdir /held --lease 3000
expect 7 "$AQUIFER" ns hold /held -- bash "$TMP/grows"
expect 0 "$AQUIFER" ns mkdir /brief --lease 100
until_fails "$AQUIFER" ns stat /brief
expect 1 "$AQUIFER" ns renew /brief
expect 1 "$AQUIFER" ns hold /brief -- true
expect 2 "$AQUIFER" ns hold /wc
expect 127 "$AQUIFER" ns hold /wc -- "$TMP/none"
echo "ok: hold"

# kill -9: what was answered is there, and what nobody could renew meanwhile, too.
expect 0 "$AQUIFER" ns mkdir /short --lease 30000
kill_node c0
expect 1 "$AQUIFER" ns stat /short
expect 0 "$AQUIFER" up
until_ok "$AQUIFER" ns stat /short --json
json "$TMP/out" 'd["lease"]["state"] == "live"' >/dev/null
expect 0 "$AQUIFER" ns stat /wc/t4/t6/t7/t8/t9 --json
[[ $(json "$TMP/out" 'd["id"]') == "$nine" ]] || fail "another task"
expect 0 "$AQUIFER" ns rm /wc --recursive
until_ok "$AQUIFER" ns mkdir /wc --plan "$TMP/plan.json"
echo "ok: kill -9"
expect 0 "$AQUIFER" down
