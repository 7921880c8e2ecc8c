#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Control calls and counters of a switch over HTTP: whose token opens it, what it
# says of bad input, what promtool says of its metrics, TLS where others can reach
# it, and that the socket of its machine works as before.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/switch_lib.sh
source "$(dirname "$0")/switch_lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
need curl

start_switch --listen 127.0.0.1:0 --program fault:loss=0 --program steer --program fault:loss=0 \
	--audit "$TMP/audit"
port=$(json "$TMP/switch" 'd["port"]')
token=$(<"$RUNDIR/admin-token")
url=http://127.0.0.1:$port

# ask STATUS METHOD PATH [BODY]: with $token, if it is not empty; the answer is
# in $TMP/body.
ask() {
	local header=() body=() got
	[[ -z $token ]] || header=(-H "Authorization: Bearer $token")
	[[ -z ${4:-} ]] || body=(-d "$4")
	got=$(curl -sS -m 30 -o "$TMP/body" -w '%{http_code}' -X "$2" \
		"${header[@]}" "${body[@]}" "$url/$3")
	[[ $got == "$1" ]] || fail "$2 $3 ${4:-}: $got instead of $1: $(<"$TMP/body")"
}

# says WORDS: the last answer does.
says() {
	grep -q "$1" "$TMP/body" || fail "not '$1' but $(<"$TMP/body")"
}

ask 200 GET health
ask 200 GET v1/stats
json "$TMP/body" 'd["switch"] == "s1" and d["counters"]["frames"] == 0' >/dev/null
ask 200 GET v1/hello
json "$TMP/body" '[p["name"] for p in d["programs"]] == ["fault", "steer", "fault"]' >/dev/null
ask 200 GET v1/resources
ask 200 POST v1/tell '{"text":"fault reload loss=1%;dup=1%;corrupt=1%"}'
"$AQUIFER" switch --name s1 --tell 'fault show' >"$TMP/out"
grep -q '"rules":3' "$TMP/out" || fail "the socket: $(<"$TMP/out")"
# As the socket says it.
"$AQUIFER" switch --name s1 --tell 'steer show' >"$TMP/out"
ask 200 POST v1/tell '{"text":"steer show"}'
cmp "$TMP/out" "$TMP/body" || fail "two answers"
echo "ok: calls"

ask 200 GET metrics
for family in ports events_total program_events_total build_info; do
	grep -q "^aquifer_\(switch_\)\?$family" "$TMP/body" || fail "no $family"
done
grep -q 'aquifer_switch_program_events_total{counter="lost",program="fault",place="2"} 0' \
	"$TMP/body" || fail "no counter of a program: $(<"$TMP/body")"
if command -v promtool >/dev/null; then
	promtool check metrics <"$TMP/body" || fail "promtool"
fi
echo "ok: metrics"

ask 400 POST v1/tell '{"text":"fault reload loss=x"}'
ask 400 POST v1/tell '{"text":"nobody show"}'
says nobody
ask 400 POST v1/tell '{"text":"steer show\nstats"}'
says control
ask 400 POST v1/tell "{\"text\":\"$(printf 'x%.0s' {1..5000})\"}"
says '\\"text\\" has'
ask 400 POST v1/tell '{"text":7}'
says '\\"text\\"'
ask 400 POST v1/tell '{}'
says '\\"text\\"'
ask 400 POST v1/tell '{"text":"steer show","more":1}'
says more
ask 400 POST v1/tell '{"text":"steer show","text":"steer show"}'
ask 400 POST v1/tell '['
ask 404 GET v1/nothing
ask 405 DELETE v1/tell
echo "ok: bad input"

for token in "" "$(printf '0%.0s' {1..64})"; do
	ask 200 GET health
	ask 401 GET metrics
	ask 401 GET v1/stats
	ask 401 POST v1/tell '{"text":"fault reload loss=50%"}'
done
token=$(<"$RUNDIR/node-token")
ask 200 POST v1/tell '{"text":"fault show"}'
says '"rules":3' # a stranger was not obeyed
grep -q '/v1/tell' "$TMP/audit" || fail "nothing on record: $(<"$TMP/audit")"
! grep -q "$token" "$TMP/audit" || fail "a token on record"
echo "ok: tokens"

# Too many calls of an address without a token that is known.
token=
for _ in {1..400}; do
	got=$(curl -sS -o "$TMP/body" -D "$TMP/headers" -w '%{http_code}' "$url/health?[1-50]" | tail -c 3)
	[[ $got != 429 ]] || break
done
[[ $got == 429 ]] || fail "nobody is too many"
grep -qi '^Retry-After: [1-9]' "$TMP/headers" || fail "no Retry-After: $(<"$TMP/headers")"
echo "ok: too many"

stop_switch

status=0
"$AQUIFER" switch --name s2 --listen 0.0.0.0:0 >"$TMP/out" 2>"$TMP/err" || status=$?
((status)) || fail "others reach it without TLS"
grep -q "TLS" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
tls_make good
start_switch --listen 0.0.0.0:0 --tls-cert "$TMP/good.pem" --tls-key "$TMP/good-key.pem"
port=$(json "$TMP/switch" 'd["port"]')
got=$(curl -sS -m 30 -o "$TMP/body" -w '%{http_code}' --cacert "$TMP/good-ca.pem" \
	-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" \
	"https://127.0.0.1:$port/v1/stats")
[[ $got == 200 ]] || fail "over TLS: $got $(<"$TMP/body")"
stop_switch
echo "ok: TLS"
