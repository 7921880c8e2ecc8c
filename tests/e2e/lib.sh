# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by every e2e script: a network and a folder of its own, processes ended
# by their pid, free ports, and two programs talking to each other on the soft NIC.
#
# meson gives: AQUIFER (the binary), AQ_SOURCE (the tree), AQ_PRELOAD (the
# sanitizer's runtime in a sanitized build, else empty).
set -euo pipefail

: "${AQUIFER:?run me through meson test}" "${AQ_SOURCE:?}"
AQ_PRELOAD=${AQ_PRELOAD:-}
# Everything begins anew in namespaces of its own, so that tests that run at once
# share no port, no socket's name and no /dev/shm. Where that is not allowed,
# meson lets the tests run one after the other (own_net in meson.build).
# shellcheck disable=SC2016 # for the inner shell
own_net='ip link set lo up && mount -t tmpfs tmpfs /dev/shm && exec "$@"'
if [[ -z ${AQ_OWN_NET:-} ]] &&
	unshare --net --mount sh -c "$own_net" sh true 2>/dev/null; then
	AQ_OWN_NET=1 exec unshare --net --mount sh -c "$own_net" sh \
		bash "$0" "$@"
fi

# outside COMMAND...: with the network of whoever started the test, to fetch what
# is missing here.
outside() {
	local enter=()
	[[ -z ${AQ_OWN_NET:-} ]] || enter=(nsenter --target "$PPID" --net)
	"${enter[@]}" "$@"
}

# Unmodified programs do leak; ours are checked by the unit tests.
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
# A rack of its own: no interference with another test or a user's processes.
TMP=$(mktemp -d "${TMPDIR:-/tmp}/aquifer-e2e.XXXXXX")
export AQUIFER_RUNDIR=$TMP AQUIFER_RACK_NAME=e2e-$$
PIDS=()

# TERM first: timeout(1) hands it on to the program, KILL it cannot.
cleanup() {
	local status=$? pid alive=()
	for pid in "${PIDS[@]}"; do
		! kill -TERM "$pid" 2>/dev/null || alive+=("$pid")
	done
	for _ in {1..10}; do
		kill -0 "${alive[@]}" 2>/dev/null || break
		sleep 0.02
	done
	kill -KILL "${alive[@]}" 2>/dev/null || true
	rm -rf "$TMP"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

skip() {
	echo "SKIP: $*"
	exit 77
}

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

# need PROGRAM...: skips the test where one of them is not installed.
need() {
	local program
	for program; do
		command -v "$program" >/dev/null ||
			skip "$program is not installed"
	done
}

# need_nic: every build has the private library; one without it is broken.
need_nic() {
	local dir
	dir=$(dirname "$AQUIFER")/src/nic/verbs
	[[ -e $dir/libibverbs.so.1 ]] || fail "no libibverbs.so.1 in $dir"
}

# soft PROGRAM...: on the soft NIC, with the sanitizer's runtime if needed.
# The runtime is not for aquifer itself, which has its own. In the background
# use "${SOFT[@]}" PROGRAM & instead, so that $! is the program's own pid.
SOFT=("$AQUIFER" exec --nic soft --)
if [[ -n $AQ_PRELOAD ]]; then
	SOFT+=(env LD_PRELOAD="$AQ_PRELOAD")
fi
soft() {
	"${SOFT[@]}" "$@"
}

# expect STATUS COMMAND...: output of both kinds goes to $TMP/out, $TMP/err.
expect() {
	local want=$1 got=0
	shift
	"$@" >"$TMP/out" 2>"$TMP/err" || got=$?
	if ((got != want)); then
		cat "$TMP/out" "$TMP/err" >&2
		fail "'$*' returned $got instead of $want"
	fi
}

# json FILE EXPRESSION: evaluates a Python expression over the document d.
json() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
r = eval("(" + sys.argv[2] + ")")
print(r)
# A count may be 0; what is false or missing is a failure, and says so: who asks
# often throws away what is printed.
if not r and (r != 0 or r is False):
    sys.exit("not so: %s in %s" % (sys.argv[2], json.dumps(d)[:2000]))' "$@"
}

# A TCP port that is free now. The network is this test's alone, so it stays so.
free_port() {
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# wait_port PORT PID: until somebody listens; fails when PID ends before.
wait_port() {
	local hex
	hex=$(printf ':%04X' "$1")
	for _ in {1..400}; do
		if awk -v p="$hex" '$4 == "0A" && $2 ~ p "$" { found = 1 }
			END { exit !found }' /proc/net/tcp /proc/net/tcp6; then
			return 0
		fi
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# run_pair PORT SERVER_WORDS -- CLIENT_WORDS: starts the server on the soft
# NIC, waits for its TCP port, runs the client; both must succeed in 60 s.
run_pair() {
	local port=$1 server=() pid status=0 server_status=0
	shift
	while [[ $1 != -- ]]; do
		server+=("$1")
		shift
	done
	shift
	"${SOFT[@]}" timeout -k 5 60 "${server[@]}" >"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || true
	soft timeout -k 5 60 "$@" >"$TMP/client" 2>&1 || status=$?
	if ((status != 0)); then
		# Do not wait for a server that nobody will talk to.
		kill "$pid" 2>/dev/null || true
	fi
	wait "$pid" || server_status=$?
	if ((status != 0 || server_status != 0)); then
		echo "--- server (exit code $server_status): ${server[*]}"
		cat "$TMP/server"
		echo "--- client (exit code $status): $*"
		cat "$TMP/client"
		fail "$1: client $status, server $server_status"
	fi
}

# pingpong PROGRAM OPTION...: one of the ibv_*_pingpong examples.
pingpong() {
	local port
	need "$1"
	need_nic
	port=$(free_port)
	run_pair "$port" "$@" -p "$port" -- "$@" -p "$port" 127.0.0.1
	echo "ok: $*"
}

# perftest PROGRAM OPTION...: -F, because CPU frequencies do not matter here.
perftest() {
	local port
	need "$1"
	need_nic
	port=$(free_port)
	run_pair "$port" "$@" -F -p "$port" -- "$@" -F -p "$port" 127.0.0.1
	echo "ok: $*"
}

# wait_cm PID: until somebody in our rack listens through rdma_cm.
wait_cm() {
	local file
	for _ in {1..400}; do
		for file in "$AQUIFER_RUNDIR/$AQUIFER_RACK_NAME"/*:cm:*; do
			# Flag 10000: the socket listens, it is not only bound.
			if awk -v n="/${file##*/}" '$4 == "00010000" &&
				substr($8, length($8) - length(n) + 1) == n {
				found = 1 } END { exit !found }' \
				/proc/net/unix; then
				return 0
			fi
		done
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# show_pair SERVER_STATUS CLIENT_STATUS: what both said.
show_pair() {
	echo "--- server (exit code $1):"
	cat "$TMP/server"
	echo "--- client (exit code $2):"
	cat "$TMP/client"
}

# start_cm_server WORDS...: on the soft NIC, in the background; sets SERVER_PID.
start_cm_server() {
	"${SOFT[@]}" timeout -k 5 60 "$@" >"$TMP/server" 2>&1 &
	SERVER_PID=$!
	PIDS+=("$SERVER_PID")
	wait_cm "$SERVER_PID" || {
		cat "$TMP/server"
		fail "'$*' does not listen"
	}
}

# AQ_VIA_SWITCH, options of a switch or empty: everything in this test that has
# a NIC goes through that switch.
if [[ -n ${AQ_VIA_SWITCH+set} ]]; then
	# shellcheck disable=SC2086 # several words
	"$AQUIFER" switch --name via $AQ_VIA_SWITCH >"$TMP/via" 2>"$TMP/via.err" &
	PIDS+=("$!")
	for _ in {1..200}; do
		[[ -s $TMP/via ]] && break
		sleep 0.05
	done
	[[ -s $TMP/via ]] || fail "the switch does not start: $(cat "$TMP/via.err")"
	export AQUIFER_NIC_PORT=switch:via
fi

# veth NAME PID NAME PID: a pair of interfaces between the namespaces of two
# processes. Linux 6.18 now and then leaves one of them here.
veth() {
	ip link add "$1" netns "$2" type veth peer name "$3" netns "$4" ||
		return 1
	while (($#)); do
		nsenter -t "$2" -n ip link show "$1" >/dev/null 2>&1 ||
			ip link set "$1" netns "$2"
		shift 2
	done
}
