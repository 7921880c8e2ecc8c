# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the coherent_* tests after lib.sh: a rack with shared memory, and
# machines, each with a NIC of its own at the rack's switch. CLIENT is set by the
# script. The machine under the tests may be slow: nobody is given up for that.
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

declare -A SERVER ADDRESS=([a]=127.0.0.2 [b]=127.0.0.3)

can_share() {
	python3 - <<-'END' || skip "this user has no userfaultfd, or Linux is older than 5.19"
		import ctypes, os, sys
		libc = ctypes.CDLL(None, use_errno=True)
		fd = libc.syscall(323, os.O_CLOEXEC)
		sys.exit(fd < 0 or tuple(map(int, os.uname().release.split(".")[:2])) < (5, 19))
	END
}

# start_rack: switch and memory node, with a segment "words".
start_rack() {
	can_share
	cat >"$TMP/rack.ini" <<-END
		[nic]
		port = switch:s1
		[switch s1]
		programs = coherence:node_ms=30000,fin_ms=30000,peer_ms=30000
		[memory m0]
		size = 16M
		shared = 64M
	END
	expect 0 "$AQUIFER" up
	expect 0 "$AQUIFER" shared create words 32M
}

# serve MACHINE OPTION...: its cache server.
serve() {
	local machine=$1
	shift
	: >"$TMP/serve.$machine"
	AQUIFER_NIC_ADDRESS=${ADDRESS[$machine]} "$AQUIFER" shared serve \
		--name "$machine" "$@" >"$TMP/serve.$machine" \
		2>"$TMP/serve.$machine.err" &
	SERVER[$machine]=$!
	PIDS+=("$!")
	for _ in {1..600}; do
		[[ ! -s $TMP/serve.$machine ]] || return 0
		kill -0 "${SERVER[$machine]}" 2>/dev/null || break
		sleep 0.05
	done
	fail "no cache server: $(<"$TMP/serve.$machine.err")"
}

# on MACHINE STEP SIDE COUNT: a program there.
on() {
	env AQUIFER_NIC_ADDRESS="${ADDRESS[$1]}" \
		${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
		timeout -k 5 "${PATIENCE:-120}" "$CLIENT" words "${@:2}"
}

# both STEP COUNT: side 0 on machine a, side 1 on machine b.
both() {
	local pid status=0
	on a "$1" 0 "$2" >"$TMP/side0" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	on b "$1" 1 "$2" >"$TMP/side1" 2>&1 || status=$?
	wait "$pid" || status=$?
	((status == 0)) ||
		fail "$1: $status: $(cat "$TMP"/side? "$TMP"/serve.*.err)"
}

# sum_is NUMBER MACHINE...: each of them sees it.
sum_is() {
	local machine
	for machine in "${@:2}"; do
		on "$machine" show 0 0 >"$TMP/sum" 2>&1 ||
			fail "show: $(<"$TMP/sum")"
		[[ $(<"$TMP/sum") == "$1" ]] ||
			fail "machine $machine has $(<"$TMP/sum"), not $1"
	done
}

# stored MACHINE STEP VALUE: a program there that has stored and waits; sets PID.
stored() {
	: >"$TMP/stored"
	env AQUIFER_NIC_ADDRESS="${ADDRESS[$1]}" \
		${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
		"$CLIENT" words "$2" 0 "$3" >"$TMP/stored" 2>"$TMP/stored.err" &
	PID=$!
	PIDS+=("$PID")
	wait_line "$TMP/stored" 1 >/dev/null
}

# ends_with STATUS PID
ends_with() {
	local got=0
	wait "$2" || got=$?
	((got == $1)) || fail "a program ended with $got instead of $1"
}

# lost WANT: of what stat says, "> 0" or "== 0"; until_lost waits for it.
lost() {
	expect 0 "$AQUIFER" shared stat words --json
	json "$TMP/out" "d['lost'] $1" >/dev/null 2>&1
}
until_lost() {
	for _ in {1..600}; do
		! lost "$1" || return 0
		sleep 0.05
	done
	fail "lost is not $1: $(<"$TMP/out")"
}

# machines_are COUNT: waits until so many are members.
machines_are() {
	for _ in {1..1200}; do
		expect 0 "$AQUIFER" shared machines --json
		! json "$TMP/out" \
			"sum(m['state'] == 'member' for m in d['members']) == $1" \
			>/dev/null 2>&1 || return 0
		sleep 0.05
	done
	fail "not $1 machines: $(<"$TMP/out")"
}

# directory_is_sound: the switch's own check of all entries.
directory_is_sound() {
	expect 0 "$AQUIFER" switch --name s1 --tell 'coherence check'
	json "$TMP/out" 'd["wrong"] == ""' >/dev/null || fail "$(<"$TMP/out")"
}
