#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A drain that is killed before any of its requests, and one whose target dies,
# leave the region at one place, where the program that uses it goes on.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/move_lib.sh
source "$(dirname "$0")/move_lib.sh"

command -v strace >/dev/null || skip "strace is not installed"
strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"

# inject SIGNAL N COMMAND...: which gets the signal before its Nth request. The
# leak checker, where there is one, does not work under a tracer.
inject() {
	ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" strace -f -qq -o /dev/null \
		-e trace=sendto,sendmsg \
		-e "inject=sendto,sendmsg:signal=$1:when=$2" "${@:3}"
}
ASAN_OPTIONS=${ASAN_OPTIONS:-}

# has NODE: whether the node says that it has the region.
has() {
	[[ $(curl -sS -o "$TMP/http" -w '%{http_code}' --unix-socket "$RUNDIR/$1.sock" \
		-H "Authorization: Bearer $(<"$RUNDIR/token")" "http://$1/v1/regions/plain") == 200 ]]
}

# settle: until the region is at one node, $from, and can be used; the other
# node, $to, takes something new.
settle() {
	until_ok "$AQUIFER" region stat plain --timeout 60000
	if has m0; then
		! has m1 || fail "it is at both nodes"
		from=m0 to=m1
	else
		has m1 || fail "it is nowhere"
		from=m1 to=m0
	fi
	expect 0 "$AQUIFER" node undrain "$to"
	use_go_on
}

up_two
expect 0 "$AQUIFER" region create plain 4M --node m1
use_begin region plain

# Before each request in turn, from wherever it is to the other node. What the
# drain before it has left is no reason to fail.
killed=0
away=0
for ((step = 1; ; step++)); do
	settle
	was=$from
	rc=0
	inject KILL "$step" "$AQUIFER" node drain "$from" >"$TMP/drain" 2>&1 || rc=$?
	[[ $rc != 0 ]] || break
	if ((rc != 137)); then
		# A node has not heard yet that it takes something new.
		grep -q "stays: \|has not heard" "$TMP/drain" || fail "step $step: $rc $(<"$TMP/drain")"
		step=$((step - 1))
		continue
	fi
	killed=$((killed + 1))
	settle
	[[ $from == "$was" ]] || away=$((away + 1))
	((step < 200)) || fail "the drain never ends by itself"
done
((killed > 10)) || fail "killed $killed times only"
grep -q "nothing is left on it" "$TMP/drain" || fail "$(<"$TMP/drain")"
echo "ok: killed $killed times, after $away of them it was at the other node"

# The node that it goes to dies while the drain stands still.
settle
pid=$(curl -sS --unix-socket "$RUNDIR/$to.sock" "http://$to/v1/status" | python3 -c \
	'import json, sys; print(json.load(sys.stdin)["pid"])')
arrives() {
	curl -sS --unix-socket "$RUNDIR/$to.sock" \
		-H "Authorization: Bearer $(<"$RUNDIR/token")" "http://$to/v1/moves" |
		grep -q arriving
}
# stands: the drain, which strace has started for a shell, stands still or has
# ended.
stands() {
	use_lives "$tracer" || return 0
	victim=$(pgrep -P "$(pgrep -P "$tracer" -x strace)") &&
		[[ $(cut -d' ' -f3 "/proc/$victim/stat" 2>/dev/null) == [tT] ]]
}
for ((step = 5; ; step++)); do
	inject STOP "$step" "$AQUIFER" node drain "$from" >"$TMP/drain" 2>&1 &
	tracer=$!
	PIDS+=("$tracer")
	until_ok stands
	use_lives "$tracer" || fail "it ended: $(<"$TMP/drain")"
	! arrives || break
	kill -9 "$victim"
	wait "$tracer" && fail "it was killed"
	settle
done
kill -9 "$pid"
kill -CONT "$victim"
rc=0
wait "$tracer" || rc=$?
((rc == 1)) || fail "$rc: $(<"$TMP/drain")"
grep -q "region plain of tenant default: stays: " "$TMP/drain" || fail "$(<"$TMP/drain")"
use_go_on
use_end
expect 0 "$AQUIFER" region stat plain
echo "ok: its target died before step $step"
