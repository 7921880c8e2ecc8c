#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user who is not the program's gets nothing of a program under `aquifer run`:
# no memory to read, to change or to truncate, and no way to keep others out.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
CLIENT=$1
((EUID == 0)) || skip "two users are needed"
need setpriv
STRANGER=(setpriv --reuid=65534 --regid=65534 --clear-groups
	env PATH=/usr/bin:/bin python3 -)

# attack MODE [TOKEN]: as nobody; what it says is in $TMP/attack.
attack() {
	"${STRANGER[@]}" "$1" "$SOCKET" "${@:2}" \
		<"$AQ_SOURCE/tests/e2e/run_stranger.py" >"$TMP/attack" 2>&1
}

# A root program that compares every byte, and tells where its pager is.
cat >"$TMP/victim" <<END
printf '%s\n' "\$AQUIFER_RUN" >"$TMP/where"
exec "$CLIENT" loop 12
END
: >"$TMP/loop"
"$AQUIFER" run --local 4M --json -- sh "$TMP/victim" >"$TMP/loop" \
	2>"$TMP/loop.err" &
RUN=$!
PIDS+=("$RUN")
wait_line "$TMP/loop" 1 >/dev/null || fail "$(cat "$TMP/loop.err")"
read -r SOCKET TOKEN <"$TMP/where"

for mode in read corrupt truncate; do
	! attack "$mode" || fail "$mode: $(cat "$TMP/attack")"
	# The secrets do not help who is somebody else.
	! attack "$mode" "$TOKEN" ||
		fail "$mode with the token: $(cat "$TMP/attack")"
	grep -qx 'uid 65534' "$TMP/attack" || fail "$(cat "$TMP/attack")"
	kill -0 "$RUN" 2>/dev/null || fail "it died: $(cat "$TMP/loop.err")"
done
! grep -q "${SOCKET##*/}" /proc/net/unix || fail "the name is public"
echo "ok: nothing for a stranger"

kill -TERM "$RUN"
status=0
wait "$RUN" || status=$?
((status == 143)) || fail "the program: $status $(cat "$TMP/loop.err")"
! grep -q '^line' "$TMP/loop.err" || fail "$(cat "$TMP/loop.err")"
grep '^{"local"' "$TMP/loop.err" >"$TMP/report"
report 'd["refused"] >= 6 and d["loads"] > 0'
[[ ! -e ${SOCKET%/*} ]] || fail "$SOCKET is left behind"
echo "ok: the program ends well"

# Connections without a word, of root, who may attach: more than the pager keeps
# places for. A process that comes later attaches all the same.
cat >"$TMP/late" <<END
printf '%s\n' "\$AQUIFER_RUN" >"$TMP/where"
read -r word <"$TMP/go"
"$CLIENT" random 4
END
rm "$TMP/where"
mkfifo "$TMP/go" "$TMP/stop"
"$AQUIFER" run --local 2M --json -- sh "$TMP/late" >"$TMP/out" \
	2>"$TMP/err" &
RUN=$!
PIDS+=("$RUN")
for _ in {1..300}; do
	[[ ! -s $TMP/where ]] || break
	sleep 0.1
done
read -r SOCKET TOKEN <"$TMP/where"
: >"$TMP/silent"
python3 "$AQ_SOURCE/tests/e2e/run_stranger.py" silent "$SOCKET" \
	<"$TMP/stop" >"$TMP/silent" 2>&1 &
PIDS+=($!)
exec 9>"$TMP/stop"
[[ $(wait_line "$TMP/silent" 2) == "100 connections" ]] || fail "$(cat "$TMP/silent")"
echo go >"$TMP/go"
wait "$RUN" || fail "late: $? $(cat "$TMP/err")"
exec 9>&-
grep -q '^ok$' "$TMP/out" || fail "late: $(cat "$TMP/out" "$TMP/err")"
! grep -q 'local memory' "$TMP/err" || fail "not attached: $(cat "$TMP/err")"
echo "ok: silent callers keep nobody out"
