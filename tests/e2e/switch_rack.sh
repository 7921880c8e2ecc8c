#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rack with a switch that replaces atomics: up starts it, nodes declare
# themselves, regions and connections to it, clients notice nothing, and a
# switch that was killed is told everything again.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

cat >"$TMP/rack.ini" <<END
[nic]
port = switch:s1
[switch s1]
programs = swordbox steer
[memory m0]
size = 16M
END

# sword EXPRESSION: of what the program says.
sword() {
	"$AQUIFER" switch --name s1 --tell 'swordbox show' >"$TMP/sword"
	json "$TMP/sword" "$1" >/dev/null || {
		cat "$TMP/sword"
		fail "not so: $1"
	}
}

# replaced: operations that the switch has decided.
replaced() {
	"$AQUIFER" switch --name s1 --stats >"$TMP/stats"
	json "$TMP/stats" "d['programs'][0]['replaced']"
}

expect 0 "$AQUIFER" up --json
json "$TMP/out" 'd["switches"][0]["state"] == "up"
	and d["nodes"][0]["state"] == "up"' >/dev/null || fail "$(<"$TMP/out")"
sword 'd["ready"] and len(d["servers"]) == 1'
expect 0 "$AQUIFER" region create plain 2M
expect 0 "$AQUIFER" region create words 2M --switch-atomics
expect 1 "$AQUIFER" region resize words 4M
client basic plain >"$TMP/out" 2>&1 || fail "$(<"$TMP/out")"
before=$(replaced)
client basic words >"$TMP/out" 2>&1 || fail "$(<"$TMP/out")"
client threads words >"$TMP/out" 2>&1 || fail "$(<"$TMP/out")"
(($(replaced) > before + 100)) || fail "atomics were not replaced"

# An ordered index whose locks the switch decides on; a client is killed.
expect 0 "$AQUIFER" index create t --memory 4M --failure 200 --switch-locks \
	--host-locks --json
json "$TMP/out" 'd["locks_at_switch"]' >/dev/null || fail "$(<"$TMP/out")"
before=$(replaced)
expect 0 "$AQUIFER" index fill t --count 300 --threads 2
"$AQUIFER" index fill t --count 200000 --threads 2 >"$TMP/killed" 2>&1 &
pid=$!
sleep 0.2
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
expect 0 "$AQUIFER" index fill t --count 100
expect 0 "$AQUIFER" index check t --json
json "$TMP/out" 'd["good"] and d["keys"] >= 300' >/dev/null ||
	fail "$(<"$TMP/out")"
(($(replaced) > before + 300)) || fail "locks were not replaced"

# Narrower keys than the whole region's would pass the switch by.
ask() {
	curl -sS --unix-socket "$RUNDIR/m0.sock" -o "$TMP/answer" \
		-w '%{http_code}' -H "Authorization: Bearer $(<"$RUNDIR/token")" \
		-d "$2" "http://m0$1"
}
[[ $(ask /v1/connect '{"proto": "1.0", "qpn": 99, "psn": 5,
	"gid": "00000000000000000000ffff7f000009"}') == 200 ]] ||
	fail "$(<"$TMP/answer")"
id=$(json "$TMP/answer" 'd["connection"]')
[[ $(ask "/v1/connections/$id/grants" '{"region": "words", "rights": "rw"}') == 403 ]] ||
	fail "$(<"$TMP/answer")"
[[ $(ask "/v1/connections/$id/grants" '{"region": "words", "rights": "rwa",
	"length": 64}') == 403 ]] || fail "$(<"$TMP/answer")"
[[ $(ask "/v1/connections/$id/grants" '{"region": "words", "rights": "r"}') == 200 ]] ||
	fail "$(<"$TMP/answer")"
sword 'd["connections"] >= 1'
[[ $(ask /v1/regions '{"name": "list", "size": 65536, "switch": "store",
	"nodes_at": 4096, "nodes": 64, "node_bytes": 128}') == 201 ]] ||
	fail "$(<"$TMP/answer")"
expect 0 "$AQUIFER" switch --name s1 --tell 'steer show'
json "$TMP/out" 'd["stores"] == 1 and d["connections"] >= 1' >/dev/null ||
	fail "$(<"$TMP/out")"

# The way past the switch is closed.
export DEADLINE_MS=1000
expect_code 0 plain read 0
(
	export AQUIFER_NIC_PORT=auto
	expect_code EHOSTDOWN plain read 0
)
unset DEADLINE_MS

# Killed and started again: closed until all have declared themselves.
pid=$(node_pid s1)
kill -KILL "$pid"
for _ in {1..200}; do
	grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status" || break
	sleep 0.02
done
expect 0 "$AQUIFER" up
sword 'd["ready"] and len(d["servers"]) == 1'
client basic words >"$TMP/out" 2>&1 || fail "$(<"$TMP/out")"
(($(replaced) > 0)) || fail "a restarted switch does not replace"
expect 0 "$AQUIFER" region delete words
expect 0 "$AQUIFER" region create words 2M --switch-atomics
client basic words >"$TMP/out" 2>&1 || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" down

# Without that program nobody is promised anything.
sed -i '/programs/d' "$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 1 "$AQUIFER" region create words 1M --switch-atomics
expect 1 "$AQUIFER" index create t --memory 4M --switch-locks --host-locks
grep -q "replaces atomics" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" region create words 1M
