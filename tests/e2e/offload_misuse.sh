#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Wrong use gets clear errors: options, bounds, sizes, full rings, tokens, no
# engine, and requests to the engine that nobody should send.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
expect 0 client misuse r
# ASan's allocator may be locked by another thread at the moment of the fork.
[[ -n $AQ_PRELOAD ]] || expect 0 client fork r

bad=$(printf '0%.0s' {1..64})
AQUIFER_ENGINE_TOKEN=$bad expect 0 client open
read -r code _ <"$TMP/out"
[[ $code == EACCES ]] || fail "a wrong token gave $code"

sock=$RUNDIR/e0.engine.sock
token=$(cat "$RUNDIR/engine-token")
# http WANT METHOD PATH [BODY]
http() {
	local status
	status=$(curl -s -o "$TMP/body" -w '%{http_code}' --unix-socket "$sock" \
		-H "Authorization: Bearer $token" -X "$2" \
		${4:+-d "$4"} "http://e/$3")
	[[ $status == "$1" ]] || fail "$2 $3 $4: $status: $(cat "$TMP/body")"
}
http 200 GET v1/status
http 200 GET v1/sessions
http 400 POST v1/sessions '{}'
http 400 POST v1/sessions '[1'
http 400 POST v1/sessions '{"proto":"1.0","gid":"zz"}'
http 426 POST v1/sessions '{"proto":"9.0"}'
http 400 POST v1/sessions/x/start '{}'
http 200 POST v1/heartbeat '{"sessions":["00000000000000000000"]}'
grep -q '"lost": *\["0*"\]' "$TMP/body" || fail "not lost: $(cat "$TMP/body")"
http 400 POST v1/heartbeat '{"sessions":[1]}'
http 400 POST v1/heartbeat
http 404 GET v1/nothing
ok='{"proto":"1.0","gid":"00000000000000000000ffff7f000001","qpn":77,"psn":1,"ring":{"addr":4096,"size":8192,"rkey":1},"nodes":1,"epoch":1}'
http 200 POST v1/sessions "$ok"
id=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["session"])' "$TMP/body")
# Others with the token see that it is there, but not what would end it.
http 200 GET v1/sessions
grep -q '"slot"' "$TMP/body" || fail "no session: $(cat "$TMP/body")"
! grep -q "$id" "$TMP/body" || fail "everybody may end it: $(cat "$TMP/body")"
http 400 POST "v1/sessions/$id/start" '{"nodes":[],"regions":[]}'
http 410 POST "v1/sessions/$id/start" '{"nodes":[],"regions":[]}'
token=$bad
http 401 GET v1/sessions
http 200 GET metrics
if command -v promtool >/dev/null; then
	promtool check metrics <"$TMP/body" || fail "metrics"
fi

# An engine that is known by its address only, over HTTPS, and a region that is
# deleted.
tls_make good
tls_make other
"$AQUIFER" engine --name far --listen 127.0.0.1:0 --tls-cert "$TMP/good.pem" \
	--tls-key "$TMP/good-key.pem" --json >"$TMP/far" 2>&1 &
PIDS+=("$!")
for _ in {1..100}; do
	port=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["port"])' "$TMP/far" 2>/dev/null) && break
	sleep 0.05
done
mkfifo "$TMP/in"
client lines r <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
PIDS+=("$!")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(cat "$TMP/errors")"
kill_node e0
rm "$RUNDIR/far.engine.sock"
mv "$RUNDIR/e0.engine.sock" "$TMP/e0.sock"
# The engine is gone, not the region: who waits for engines, waits.
echo add >&3
[[ $(wait_line "$TMP/lines" 2) == "add EHOSTDOWN "* ]] || fail "$(cat "$TMP/lines")"
exec 3>&-
rm "$TMP/in" "$TMP/lines"
# away CA
away() {
	printf '[engine away]\naddress = https://127.0.0.1:%s\nca = %s\n' \
		"$port" "$TMP/$1-ca.pem" >"$TMP/rack.ini"
}
away other
expect 0 client open
read -r code _ <"$TMP/out"
[[ $code == EACCES ]] || fail "an unknown authority gave $code"
away good
mkfifo "$TMP/in"
client lines r <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
PIDS+=("$!")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(cat "$TMP/errors")"
echo here >&3
[[ $(wait_line "$TMP/lines" 2) == "here 0 "* ]] || fail "$(cat "$TMP/lines")"
expect 0 "$AQUIFER" region delete r
echo gone >&3
[[ $(wait_line "$TMP/lines" 3) == "gone ESTALE "* ]] || fail "$(cat "$TMP/lines")"
exec 3>&-
: >"$TMP/rack.ini"
mv "$TMP/e0.sock" "$RUNDIR/e0.engine.sock"

expect 0 client open
read -r code seconds <"$TMP/out"
[[ $code == EHOSTDOWN ]] || fail "no engine gave $code"
awk -v s="$seconds" 'BEGIN { exit !(s < 1.5) }' || fail "it took $seconds s"

# What is refused is in the audit log, without the numbers of
# sessions, which are the right to end them.
"$AQUIFER" engine --name e1 --audit "$TMP/audit" --audit-json >"$TMP/e1" &
PIDS+=("$!")
wait_line "$TMP/e1" 1 >/dev/null
sock=$RUNDIR/e1.engine.sock
token=$bad
http 401 DELETE v1/sessions/0123456789abcdef
python3 - "$TMP/audit" <<'PY' || fail "$(cat "$TMP/audit")"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
assert len(lines) == 1 and lines[0]["refused"], lines
assert lines[0]["status"] == 401 and lines[0]["method"] == "DELETE", lines
assert lines[0]["path"] == "/v1/sessions/:", lines
PY
