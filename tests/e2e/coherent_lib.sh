# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the coherent_* tests after lib.sh: a rack with shared memory, and
# machines, each with a NIC of its own at the rack's switch. CLIENT is set by the
# script. The machine under the tests may be slow: nobody is given up for that.
#
# Machines are addresses of this host whose NICs are plugged into the switch; or,
# where AQ_MACHINES is "netns", network namespaces with nothing in common but
# two cables each: from the one's NIC (UDP on machine a, raw on b) to an interface
# that the switch has taken, and one for the calls to the memory node.
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

declare -A SERVER ADDRESS=([a]=127.0.0.2 [b]=127.0.0.3) HOLDER
SWITCH_ADDRESS=10.77.0.9

# at MACHINE: sets AT, the words before a command that runs there.
at() {
	AT=(env AQUIFER_NIC_ADDRESS="${ADDRESS[$1]}")
	[[ -n ${HOLDER[$1]:-} ]] || return 0
	AT=(nsenter -t "${HOLDER[$1]}" -n "${AT[@]}" "AQUIFER_NIC_PORT=${PORT[$1]}"
		AQUIFER_RUNDIR="$TMP/$1" AQUIFER_CONFIG="$TMP/$1.ini"
		AQUIFER_TOKEN="$(<"$RUNDIR/token")")
}

# far_machine NAME NUMBER PORT: a namespace with its cables, and what its rack.ini
# says of the memory node.
declare -A PORT
far_machine() {
	unshare --net sleep 3600 &
	HOLDER[$1]=$!
	PIDS+=("$!")
	until [[ ! /proc/$!/ns/net -ef /proc/self/ns/net ]]; do
		kill -0 "$!" 2>/dev/null || skip "no network namespaces here"
		sleep 0.02
	done
	veth "v$1" "${HOLDER[$1]}" "s$1" "$$" || skip "no veth here"
	veth "c$1" "${HOLDER[$1]}" "c$1" "$$" || skip "no veth here"
	ip link set "s$1" up
	ip addr add "10.88.$2.9/24" dev "c$1"
	ip link set "c$1" up
	nsenter -t "${HOLDER[$1]}" -n sh -c "ip link set lo up &&
		ip addr add 10.77.0.$2/24 dev v$1 && ip link set v$1 up &&
		ip addr add 10.88.$2.1/24 dev c$1 && ip link set c$1 up"
	ADDRESS[$1]=10.77.0.$2
	PORT[$1]=$3
	mkdir "$TMP/$1"
	printf '[node m0]\naddress = 10.88.%s.9:7470\n' "$2" >"$TMP/$1.ini"
}

far_machines() {
	need ip nsenter
	if ((EUID != 0)) || [[ -z ${AQ_OWN_NET:-} ]]; then
		skip "no namespaces here"
	fi
	far_machine a 1 udp
	far_machine b 2 raw:vb
}

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
	local to_machines='' to_node=''
	can_share
	if [[ ${AQ_MACHINES:-} == netns ]]; then
		far_machines
		to_machines="ports = raw:sa raw:sb
			address = $SWITCH_ADDRESS"
		to_node="listen = 0.0.0.0:7470
			insecure = yes"
	fi
	sed 's/^[[:space:]]*//' >"$TMP/rack.ini" <<-END
		[nic]
		port = switch:s1
		[switch s1]
		programs = coherence:node_ms=30000,fin_ms=30000,peer_ms=30000
		$to_machines
		[memory m0]
		size = 16M
		shared = 64M
		$to_node
	END
	expect 0 "$AQUIFER" up
	expect 0 "$AQUIFER" shared create words 32M
}

# start_nodes: switch and two memory nodes, of which m0 leads; no segment.
start_nodes() {
	can_share
	sed 's/^[[:space:]]*//' >"$TMP/rack.ini" <<-END
		[nic]
		port = switch:s1
		[switch s1]
		programs = coherence:node_ms=2000,fin_ms=30000,peer_ms=30000
		[memory m0]
		size = 16M
		shared = 32M
		[memory m1]
		size = 16M
		shared = 32M
	END
	expect 0 "$AQUIFER" up
}

# is NAME CONDITION: waits until it holds of what stat says.
is() {
	for _ in {1..600}; do
		! "$AQUIFER" shared stat "$1" --json >"$TMP/out" 2>"$TMP/err" ||
			! json "$TMP/out" "$2" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "$1 is not $2: $(cat "$TMP/out" "$TMP/err")"
}

# serve MACHINE OPTION...: its cache server.
serve() {
	local machine=$1
	shift
	: >"$TMP/serve.$machine"
	at "$machine"
	"${AT[@]}" "$AQUIFER" shared serve \
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
	at "$1"
	"${AT[@]}" ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
		timeout -k 5 "${PATIENCE:-120}" "$CLIENT" words "${@:2}"
}

# begun FILE...: programs that add, of which these are the outputs, are at it.
begun() {
	local file
	for file; do
		for _ in {1..600}; do
			! grep -qs adding "$file" || continue 2
			sleep 0.05
		done
		fail "nobody adds: $(<"$file")"
	done
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
	at "$1"
	"${AT[@]}" ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
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

# cache_is_sound MACHINE: it has something, and the switch knows of all of that.
cache_is_sound() {
	at "$1"
	expect 0 "${AT[@]}" "$AQUIFER" shared check --json
	json "$TMP/out" 'd["cached"] > 0 and d["wrong"] == []' >/dev/null ||
		fail "$(<"$TMP/out")"
}

# directory_is_sound: the switch's own check of all entries.
directory_is_sound() {
	expect 0 "$AQUIFER" switch --name s1 --tell 'coherence check'
	json "$TMP/out" 'd["wrong"] == ""' >/dev/null || fail "$(<"$TMP/out")"
}
