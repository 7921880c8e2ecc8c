#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine inside the switch: data is right, its control process and the
# switch may be killed, an engine that is a process takes over and back, and
# NICs that are elsewhere are refused.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1
history=$2
seconds=${AQ_KILL_SECONDS:-5}

cat >"$TMP/rack.ini" <<END
[nic]
port = switch:s1
[switch s1]
programs = cowbird
[memory m0]
size = 64M
[memory m1]
size = 64M
END

# cow EXPRESSION: of the sessions that the switch has.
cow() {
	"$AQUIFER" switch --name s1 --tell 'cowbird show' >"$TMP/cow" &&
		json "$TMP/cow" "$1" >/dev/null
}

# cow_soon EXPRESSION: within the patience of heartbeats and much more.
cow_soon() {
	for _ in {1..300}; do
		! cow "$1" || return 0
		sleep 0.1
	done
	fail "not so: $1: $(<"$TMP/cow")"
}

# up: daemons do not inherit what keeps the application alive.
up() {
	expect 0 "$AQUIFER" up 3>&-
}

# ask NAME: one request; sets code.
line=1
ask() {
	echo "$1" >&3
	line=$((line + 1))
	read -r _ code _ < <(wait_line "$TMP/lines" "$line")
}

until_ok() {
	for _ in {1..200}; do
		ask "$1"
		[[ $code != 0 ]] || return 0
		sleep 0.05
	done
	fail "$1: $code: $(<"$TMP/errors")"
}

# Data, on one node and on two.
expect 0 "$AQUIFER" up --json
json "$TMP/out" 'd["engines"][0]["state"] == "up"' >/dev/null || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" region create one 1M
expect 0 "$AQUIFER" region create two 1M --nodes 2 --stripe 4K
expect 0 client many one 3 0.7
cat "$TMP/out"
expect 0 client many two 2 0.7
cat "$TMP/out"
cow_soon 'd["sessions"] == []'
"$AQUIFER" switch --name s1 --stats >"$TMP/stats"
json "$TMP/stats" 'd["programs"][0]["reads"] > 100 and d["programs"][0]["writes"] > 100 and d["programs"][0]["broken"] == 0' >/dev/null || fail "$(<"$TMP/stats")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["engines"][0]["switch"] == "s1"' >/dev/null || fail "$(<"$TMP/out")"

# A NIC that is not at the switch.
AQUIFER_NIC_PORT=auto client lines one 600 </dev/null >"$TMP/lines" 2>"$TMP/err" || true
grep -q "is not at this switch" "$TMP/err" || fail "$(<"$TMP/lines") $(<"$TMP/err")"

# The control process is killed, and is away for longer than an engine may be
# silent: the switch serves on. A new one finds what the old one left.
mkfifo "$TMP/in"
client lines one 1200 <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
PIDS+=("$!")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "not ready"
until_ok first
serves_on() {
	for _ in {1..12}; do
		ask "$1"
		[[ $code == 0 ]] || fail "$1: $code: $(<"$TMP/errors")"
		sleep 0.5
	done
}
cow_soon 'len(d["sessions"]) == 1'
epoch=$(json "$TMP/cow" 'd["sessions"][0]["epoch"]')
kill_node e0
serves_on without
cow "[s['epoch'] for s in d['sessions']] == [$epoch]" || fail "not $epoch: $(<"$TMP/cow")"
up
cow_soon "len(d['sessions']) == 1 and d['sessions'][0]['epoch'] != $epoch and d['sessions'][0]['state'] == 'run'"
until_ok back

# It hangs: no data stops, and the session is the same one afterwards.
epoch=$(json "$TMP/cow" 'd["sessions"][0]["epoch"]')
kill -STOP "$(node_pid e0)"
serves_on beside
kill -CONT "$(node_pid e0)"
serves_on again
cow "[s['epoch'] for s in d['sessions']] == [$epoch]" || fail "not $epoch: $(<"$TMP/cow")"

# The switch hangs: the control process says so soon, and then goes on.
sock=$RUNDIR/e0.engine.sock
post() {
	curl -sS -o "$TMP/body" --unix-socket "$sock" \
		-H "Authorization: Bearer $(<"$RUNDIR/engine-token")" -d "$2" "http://e/v1/$1"
}
post sessions '{"proto":"1.0","gid":"00000000000000000000ffff7f000001","qpn":77,"psn":1,"ring":{"addr":4096,"size":8192,"rkey":1},"nodes":0,"epoch":1}'
id=$(json "$TMP/body" 'd["session"]') || fail "$(<"$TMP/body")"
kill -STOP "$(node_pid s1)"
post "sessions/$id/start" '{"nodes":[],"regions":[]}'
kill -CONT "$(node_pid s1)"
grep -q "does not answer" "$TMP/body" || fail "$(<"$TMP/body")"
until_ok woken

# The switch is killed: the application attaches to the next one.
kill_node s1
up
until_ok anew
cow_soon 'len(d["sessions"]) == 1 and d["sessions"][0]["state"] == "run"'
exec 3>&-
cow_soon 'd["sessions"] == []'

# An engine that is a process beside it: whoever serves is killed, and the
# switch now and then. What threads saw is linearizable.
printf '[engine e0]\n[engine e1]\nswitch = none\n' >>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create shared 1M --nodes 2 --stripe 4K
AQ_RACK_CLIENT=$history
client shared "$seconds" "$TMP/history" >"$TMP/done" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
kills=0
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
	for victim in e0 e1 s1; do
		sleep 0.4
		kill_node "$victim"
		kills=$((kills + 1))
		expect 0 "$AQUIFER" up
	done
done
wait "$app" || fail "after $kills kills: $(<"$TMP/errors")"
expect 0 "$AQUIFER" sim check --model register --initial 0 "$TMP/history"
echo "$kills kills, $(<"$TMP/done"), $(head -1 "$TMP/out")"
(($(grep -c '"ok"' "$TMP/history") > 100)) || fail "too few requests"

# Codes of packets are not for switches.
AQUIFER_NIC_AUTH=psk expect 1 "$AQUIFER" engine --name e2 --switch s1
grep -q "nic.auth = psk" "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" engine --name e2 --switch nowhere
grep -q "no switch 'nowhere'" "$TMP/err" || fail "$(<"$TMP/err")"
