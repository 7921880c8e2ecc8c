#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A machine that knows only the controller's address finds all nodes. A ledger
# that is damaged, newer or somebody else's is refused with words; one that
# cannot be written lets nothing be changed, and all else go on.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

control_port=$(free_port)
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
[control c0]
listen = 127.0.0.1:$control_port
store = sqlite:$TMP/c0.db
[memory m0]
size = 64M
listen = 127.0.0.1:$(free_port)
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
expect 0 "$AQUIFER" region create far 4M

# The other machine: another runtime directory, no [node] section.
mkdir "$TMP/away"
printf '[rack]\ncontrol = http://127.0.0.1:%s\n' "$control_port" >"$TMP/away.ini"
away() {
	AQUIFER_CONFIG=$TMP/away.ini AQUIFER_RUNDIR=$TMP/away \
		AQUIFER_TOKEN=$(<"$RUNDIR/token") \
		AQUIFER_ADMIN_TOKEN=$(<"$RUNDIR/admin-token") "$@"
}
expect 0 away "$AQUIFER" status --json
json "$TMP/out" '[n["name"] for n in d["nodes"]] == ["m0"] and
	d["nodes"][0]["address"].startswith("http://127.0.0.1:") and
	d["regions"][0]["name"] == "far"' >/dev/null
expect 0 away "$AQUIFER" region create more 1M
expect 0 away "$AQUIFER" node ls
expect 0 away "$AQUIFER" tenant ls
AQUIFER_TOKEN=$(printf '0%.0s' {1..64}) AQUIFER_CONFIG=$TMP/away.ini \
	AQUIFER_RUNDIR=$TMP/away expect 1 "$AQUIFER" region list
echo "ok: only the controller's address"

# A second one on the same file waits, and says who leads.
"$AQUIFER" control --name c1 --store "sqlite:$TMP/c0.db" >"$TMP/c1" 2>&1 &
PIDS+=("$!")
wait_line "$TMP/c1" 1 >/dev/null
curl -sS -o "$TMP/out" -w '%{http_code}' --unix-socket "$RUNDIR/c1.control.sock" \
	-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" \
	-d '{"name":"x"}' http://c1/v1/tenants >"$TMP/code"
[[ $(<"$TMP/code") == 421 ]] || fail "c1: $(<"$TMP/code") $(<"$TMP/out")"
json "$TMP/out" "d['leader'] == 'http://127.0.0.1:$control_port'" >/dev/null
kill_node c0
for _ in {1..600}; do
	curl -sS --unix-socket "$RUNDIR/c1.control.sock" http://c1/v1/status \
		>"$TMP/out"
	! json "$TMP/out" 'd["leads"]' >/dev/null 2>&1 || break
	sleep 0.05
done
json "$TMP/out" 'd["leads"] and d["term"] == 2' >/dev/null
kill -TERM "${PIDS[-1]}"
wait "${PIDS[-1]}" || fail "c1 ended badly: $(<"$TMP/c1")"
echo "ok: a second controller"

# Files that are no ledger.
cp "$TMP/c0.db" "$TMP/good.db"
printf 'this is no database, it is a letter to somebody' >"$TMP/letter.db"
expect 1 "$AQUIFER" control --name c2 --store "sqlite:$TMP/letter.db"
grep -q "letter.db" "$TMP/err" || fail "$(<"$TMP/err")"
head -c 9000 "$TMP/good.db" >"$TMP/half.db"
expect 1 "$AQUIFER" control --name c2 --store "sqlite:$TMP/half.db"
expect 1 "$AQUIFER" control --name c2 --store "sqlite:/nowhere/c.db"
expect 2 "$AQUIFER" control --name c2 --store "mysql:x"
python3 - "$TMP/good.db" <<'EOF2'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA user_version = 99")
db.commit()
EOF2
expect 1 "$AQUIFER" control --name c2 --store "sqlite:$TMP/good.db"
grep -q "schema 99, this program knows 1" "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: no ledger"
