#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The controller's page without a browser: its files, codes that work once, tokens
# that may only look and see their own, and all of it again after kill -9.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
need curl

# page METHOD PATH [TOKEN]: the status; headers and body are in $TMP.
page() {
	curl -sS -o "$TMP/body" -D "$TMP/headers" -w '%{http_code}' -X "$1" \
		${3:+-H "Authorization: Bearer $3"} "$base$2"
}

# status WANT METHOD PATH [TOKEN]
status() {
	local got
	got=$(page "${@:2}")
	[[ $got == "$1" ]] || fail "${*:2:2}: $got, not $1: $(<"$TMP/body")"
}

# sees EXPRESSION: until it holds of the overview for $token.
sees() {
	for _ in {1..1200}; do
		if [[ $(page GET /v1/overview "$token" 2>/dev/null) == 200 ]] &&
			json "$TMP/body" "$1" >/dev/null 2>&1; then
			return 0
		fi
		sleep 0.05
	done
	fail "never: $1 in $(<"$TMP/body")"
}

# enter COMMAND...: the address that the command prints; sets base and code.
enter() {
	local address
	expect 0 "$@"
	read -r address <"$TMP/out"
	base=${address%%/#*} code=${address##*code=}
}

# redeem: the code becomes a token.
redeem() {
	status 200 POST /v1/look/token "$code"
	token=$(sed 's/.*"token":"\([0-9a-f]*\)".*/\1/' "$TMP/body")
}

port=$(free_port)
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
[control c0]
listen = 127.0.0.1:$port
[memory m0]
size = 64M
[memory m1]
size = 64M
END
expect 1 "$AQUIFER" dashboard
expect 0 "$AQUIFER" up
AQUIFER_RACK_CONTROL=none expect 1 "$AQUIFER" dashboard
grep -q "has no controller" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" tenant create team --quota 32M --token-file "$TMP/t.token"
team=$(<"$TMP/t.token")

enter "$AQUIFER" dashboard
total=0
for file in / /page.css /page.js /icon.svg; do
	status 200 GET "$file"
	grep -qi "^content-security-policy: default-src 'self'" "$TMP/headers" ||
		fail "$file: $(<"$TMP/headers")"
	grep -qi '^x-content-type-options: nosniff' "$TMP/headers" ||
		fail "$file: $(<"$TMP/headers")"
	! grep -q 'innerHTML\|outerHTML\|document.cookie\|eval(' "$TMP/body" ||
		fail "$file makes HTML of text"
	((total += $(wc -c <"$TMP/body")))
done
((total < 100000)) || fail "the page has $total bytes"
status 404 GET /index.html
echo "ok: $total bytes of page"

status 401 GET /v1/overview
status 401 POST /v1/look/token
status 401 POST /v1/look/token "${code//[0-7]/8}"
grep -q "aquifer dashboard" "$TMP/body" || fail "$(<"$TMP/body")"
redeem
status 401 POST /v1/look/token "$code"
all=$token
status 403 GET /v1/tenants "$all"
status 403 POST /v1/look "$all"
status 403 DELETE /v1/nodes/m0 "$all"
status 404 GET /v1/history/apples/60 "$all"
status 400 GET /v1/history/used/many "$all"
echo "ok: a code works once, for who may only look"

until_ok as "$team" "$AQUIFER" region create theirs 8M --node m1
expect 0 "$AQUIFER" region create mine 4M --node m0
sees '{r["name"] for r in d["names"]} == {"mine", "theirs"} and
	{n["state"] for n in d["nodes"] if n["kind"] == "memory"} == {"up"} and
	[t["used"] for t in d["tenants"] if t["name"] == "team"] == [8 << 20] and
	d["controllers"][0]["state"] == "leads" and
	any("joins" in e["text"] for e in d["events"])'
for _ in {1..1200}; do
	status 200 GET /v1/history/used/300 "$all"
	! json "$TMP/body" 'd["values"][-1] == 12 << 20' >/dev/null 2>&1 || break
	sleep 0.05
done
json "$TMP/body" 'len(d["values"]) == 300 and d["values"][-1] == 12 << 20' \
	>/dev/null
enter as "$team" "$AQUIFER" dashboard --tenant
redeem
sees '[r["name"] for r in d["names"]] == ["theirs"] and
	[t["name"] for t in d["tenants"]] == ["team"] and
	not any("size" in n for n in d["nodes"])'
! grep -q mine "$TMP/body" || fail "not its own: $(<"$TMP/body")"
own=$token
expect 0 "$AQUIFER" token revoke team
status 401 GET /v1/overview "$own"
echo "ok: a tenant sees its own, as long as its token is one"

# Who has only an address gets one.
AQUIFER_RACK_CONTROL=http://127.0.0.1:$port enter "$AQUIFER" dashboard
[[ $base == http://127.0.0.1:$port ]] || fail "$base"
redeem
sees 'sum(n["kind"] == "memory" for n in d["nodes"]) == 2'
enter "$AQUIFER" dashboard
token=$all
kill_node c0
! page GET / >/dev/null 2>&1 || fail "who answers?"
expect 0 "$AQUIFER" up
sees 'd["controllers"][0]["term"] == 2 and
	{n["state"] for n in d["nodes"] if n["kind"] == "memory"} == {"up"} and len(d["names"]) == 2'
for secret in "$code" "$all" "$own"; do
	! grep -rqs "$secret" "$TMP/state" "$RUNDIR" || fail "a secret was kept"
done
echo "ok: the page is back after kill -9"
