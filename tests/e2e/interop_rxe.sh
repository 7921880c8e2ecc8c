#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The soft NIC on the host against a NIC that we did not write: rdma_rxe of
# Debian's kernel in a guest. Always in both directions.
# Arguments: the checker, then steps: check (every operation, bytes compared),
# pingpong, perftest, latency, rping, idle (rdma_cm: its last events, and signs of
# life while nobody says anything), rsocket (streams of rdma-core's), ipv6 (the
# check over IPv6), rack (libaquifer in the guest, on its device), lose (from
# then on, 1 % on both sides).
# shellcheck source=tests/e2e/vm/vm_lib.sh
source "$(dirname "$0")/vm/vm_lib.sh"

CHECK=$1
shift
PORT=18600
MTU=${VM_MTU:-1500}
need ib_read_lat ibv_rc_pingpong rdma rping rstream riostream
need_nic
vm_boot "$MTU"
echo "guest up after $SECONDS s"
cp "$CHECK" "$VM_SHARE/verbs_check"
guest "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1
ip addr add $VM_GUEST/24 dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0
uname -r
ibv_devinfo -d rxe0 | grep active_mtu" || fail "no rxe0 in the guest"
# Not in a pipe: it counts jobs.
guest "ibv_devinfo -v -d rxe0" >"$TMP/info" || fail "ibv_devinfo"
GID=$(sed -n "s/.*GID\[ *\([0-9]*\)\]:.*$VM_GUEST.*/\1/p" "$TMP/info")
[[ -n $GID ]] || fail "rxe0 has no address"
# Seconds for one program; the guest's processor is emulated.
LIMIT=90
ROUNDS=${VM_ROUNDS:-100}
LOSSY=

# guest_until JOB CONDITION: in the guest, or the job ended, which has a limit of
# its own. How long a program takes to start there nobody knows.
guest_until() {
	guest_start "until $2; do
	[ ! -e status.$1 ] || exit 1
	sleep 0.05
done"
	guest_wait "$VM_JOB" $((LIMIT + 5))
}

# host_until PID CONDITION...
host_until() {
	local pid=$1
	shift
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
	done
}

# host_listens PORT
host_listens() {
	[[ -n $(ip netns exec "$VM_NS" ss -Hltn "sport = :$1") ]]
}

# host_listens_cm: through rdma_cm.
host_listens_cm() {
	# shellcheck disable=SC2016 # awk's own dollars
	ip netns exec "$VM_NS" awk '$4 == "00010000" && $8 ~ ":cm:" {
		found = 1 } END { exit !found }' /proc/net/unix
}

# report STATUS_HOST STATUS_GUEST JOB WORDS...
report() {
	local h=$1 g=$2 job=$3
	shift 3
	if ((h != 0 || g != 0)); then
		echo "--- host (exit code $h)"
		cat "$TMP/host"
		echo "--- guest (exit code $g)"
		cat "$VM_SHARE/log.$job"
		echo "FAIL after $SECONDS s: $*"
		FAILED=$((FAILED + 1))
		return
	fi
	echo "ok after $SECONDS s: $*"
}
FAILED=0

# guest_serves HOST_OPTIONS GUEST_OPTIONS PROGRAM...: server in the guest.
guest_serves() {
	local host_options=$1 guest_options=$2 job h=0 g=0 program=$3
	shift 3
	PORT=$((PORT + 1))
	[[ $program == */* ]] || need "$program"
	guest_start timeout -k 2 $LIMIT "${program/#$CHECK/./verbs_check}" \
		"$guest_options" "$*" -p "$PORT"
	job=$VM_JOB
	guest_until "$job" "ss -Hltn 'sport = :$PORT' | grep -q ." || true
	# shellcheck disable=SC2086 # several words
	vm_host timeout -k 2 $LIMIT "$program" $host_options "$@" -p "$PORT" \
		"$VM_GUEST" >"$TMP/host" 2>&1 || h=$?
	guest_wait "$job" $((LIMIT + 5)) || g=$?
	report "$h" "$g" "$job" "host -> guest: ${program##*/} $*"
}

# host_serves: the same with the server on the host.
host_serves() {
	local host_options=$1 guest_options=$2 job h=0 g=0 program=$3 pid
	shift 3
	PORT=$((PORT + 1))
	[[ $program == */* ]] || need "$program"
	# shellcheck disable=SC2086 # several words
	vm_host timeout -k 2 $LIMIT "$program" $host_options "$@" -p "$PORT" \
		>"$TMP/host" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	host_until "$pid" host_listens "$PORT" || true
	guest_start timeout -k 2 $LIMIT "${program/#$CHECK/./verbs_check}" \
		"$guest_options" "$*" -p "$PORT" "$VM_HOST"
	job=$VM_JOB
	guest_wait "$job" $((LIMIT + 5)) || g=$?
	((g == 0)) || kill "$pid" 2>/dev/null || true
	wait "$pid" || h=$?
	report "$h" "$g" "$job" "guest -> host: ${program##*/} $*"
}

both() {
	guest_serves "$@"
	host_serves "$@"
}

# perftest_pair PROGRAM...: -u: 268 ms, because the guest's CPU is emulated.
perftest_pair() {
	both "-x 1" "-d rxe0 -x $GID" "$@" -F -u 16
}

check_pair() {
	both "-g 1 ${LOSSY:+-l}" "-d rxe0 -g $GID ${LOSSY:+-l}" "$CHECK" "$@"
}

# The other family: addresses of their own, the words between the checkers
# still go by IPv4.
ipv6() {
	local GID VM_NIC=fd88::1
	ip netns exec "$VM_NS" sysctl -qw net.ipv6.conf.tap0.disable_ipv6=0
	ip -n "$VM_NS" addr add fd88::1/64 dev tap0 nodad
	guest "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0
ip addr add fd88::2/64 dev eth0 nodad
sleep 1
ibv_devinfo -v -d rxe0" >"$TMP/info6" || fail "no IPv6 in the guest"
	GID=$(sed -n 's/.*GID\[ *\([0-9]*\)\]:.*fd88::2.*/\1/p' "$TMP/info6")
	[[ -n $GID ]] || fail "rxe0 has no IPv6 address: $(cat "$TMP/info6")"
	check_pair -n "$ROUNDS"
}

# Both ends count and lose one packet in a hundred on arrival.
lose() {
	LOSSY=yes
	export AQUIFER_NIC_LOSS_PPM=10000
	guest "nft -f - <<-RULES
	table ip loss {
		chain in {
			type filter hook input priority 0;
			udp dport 4791 numgen random mod 100 0 counter drop
		}
	}
	RULES" || fail "nft in the guest"
}

# Programs that connect through real CM messages: the kernel's rdma_cm on one
# side, ours on the other.
# cm_guest_serves SERVER CLIENT: each the words of one program.
cm_guest_serves() {
	local job h=0 g=0
	guest_start "timeout -k 2 $LIMIT $1"
	job=$VM_JOB
	guest_until "$job" "rdma resource show cm_id | grep -q LISTEN" || true
	# shellcheck disable=SC2086 # several words
	vm_host timeout -k 2 $LIMIT $2 >"$TMP/host" 2>&1 || h=$?
	((h == 0)) || guest "kill \$(pidof ${1%% *})" || true
	guest_wait "$job" $((LIMIT + 5)) || g=$?
	report "$h" "$g" "$job" "host -> guest: $2"
}

cm_host_serves() {
	local pid h=0 g=0 job
	# shellcheck disable=SC2086 # several words
	vm_host timeout -k 2 $LIMIT $1 >"$TMP/host" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	host_until "$pid" host_listens_cm || true
	guest_start "timeout -k 2 $LIMIT $2"
	job=$VM_JOB
	guest_wait "$job" $((LIMIT + 5)) || g=$?
	((g == 0)) || kill "$pid" 2>/dev/null || true
	wait "$pid" || h=$?
	report "$h" "$g" "$job" "guest -> host: $2"
}

rping_both() {
	cm_guest_serves "rping -s -a $VM_GUEST -V -C 10" \
		"rping -c -a $VM_GUEST -V -C 10"
	cm_host_serves "rping -s -a $VM_HOST -V -C 10" \
		"rping -c -a $VM_HOST -V -C 10"
}

# rsockets of rdma-core on one side, ours on the other.
rsocket_both() {
	local words
	for words in "rstream -S 33 -C 200" "rstream -S 300000 -C 4" \
		"riostream -S 50000 -C 4"; do
		words+=" -T b -T v"
		cm_guest_serves "$words -b $VM_GUEST" "$words -s $VM_GUEST"
		cm_host_serves "$words -b $VM_HOST" "$words -s $VM_HOST"
	done
}

# cm_client_serves COUNT: in the background; its job is VM_JOB.
cm_client_serves() {
	cp "${AQ_CM_CLIENT:?}" "$VM_SHARE/cm_client"
	guest_start timeout -k 2 $LIMIT ./cm_client listen "$VM_GUEST" 7600 "$1"
	CM_JOB=$VM_JOB
	guest_until "$CM_JOB" "rdma resource show cm_id | grep -q LISTEN" || true
}

# A program that wants all events of a connection's end gets them from both
# sides. Then a connection that is idle for longer than silence is borne: the
# kernel's NIC answers for a program that does nothing. The end of that comes
# from the kernel.
idle() {
	local pid h=0 g=0
	cm_client_serves 1
	vm_host timeout -k 2 $LIMIT "$AQ_CM_CLIENT" call "$VM_GUEST" 7600 \
		>"$TMP/host" 2>&1 || h=$?
	((h == 0)) || guest "kill \$(pidof cm_client)" || true
	guest_wait "$CM_JOB" $((LIMIT + 5)) || g=$?
	report "$h" "$g" "$CM_JOB" "host -> guest: rdma_cm to its last event"
	h=0
	cm_client_serves 9
	export AQUIFER_NIC_CM_KEEPALIVE_MS=4000
	: >"$TMP/host" # the call before has said ESTABLISHED there
	vm_host timeout -k 2 $LIMIT "$AQ_CM_CLIENT" wait "$VM_GUEST" 7600 \
		>"$TMP/host" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	unset AQUIFER_NIC_CM_KEEPALIVE_MS
	host_until "$pid" grep -q ESTABLISHED "$TMP/host" || true
	sleep 8
	! grep -q DISCONNECTED "$TMP/host" || h=1
	guest "kill -KILL \$(pidof cm_client)" || true
	guest_wait "$CM_JOB" $((LIMIT + 5)) || true # killed
	wait "$pid" || h=$?
	report "$h" 0 "$CM_JOB" "host -> guest: idle"
}

# serve ROLE OPTION...: a role of the rack on the host, for the guest.
serve() {
	ip netns exec "$VM_NS" env "AQUIFER_NIC_ADDRESS=$VM_HOST" \
		"$AQUIFER" "$@" >"$TMP/$1" 2>&1 &
	PIDS+=("$!")
	for _ in {1..100}; do
		! grep -q port "$TMP/$1" || return 0
		sleep 0.05
	done
	fail "no $1: $(cat "$TMP/$1")"
}

# An application of the guest with memory on the host, by its own device: the
# libibverbs there is Debian's, the NIC the kernel's.
rack() {
	local g name program port=$((PORT + 100))
	local run=$TMP/$AQUIFER_RACK_NAME
	: "${AQ_RACK_CLIENT:?}" "${AQ_OFFLOAD_CLIENT:?}"
	serve memory --size 16M --listen "$VM_HOST:$port" --insecure
	serve engine --listen "$VM_HOST:$((port + 1))" --insecure
	for name in r fresh; do
		"$AQUIFER" region create "$name" 2M >"$TMP/host" 2>&1 ||
			fail "$(<"$TMP/host")"
	done
	cp "$AQ_RACK_CLIENT" "$VM_SHARE/rack_client"
	cp "$AQ_OFFLOAD_CLIENT" "$VM_SHARE/offload_client"
	cp "$(dirname "$AQUIFER")/libaquifer.so.1" "$VM_SHARE"
	printf '[node m0]\naddress = %s:%s\n[engine e0]\naddress = %s:%s\n' \
		"$VM_HOST" "$port" "$VM_HOST" "$((port + 1))" \
		>"$VM_SHARE/rack.ini"
	printf '[nic]\ndevice = rxe0\n' >>"$VM_SHARE/rack.ini"
	for program in "rack_client basic r" "offload_client many fresh 2 2"; do
		g=0
		guest_start "export AQUIFER_CONFIG=\$PWD/rack.ini AQUIFER_LOG=info
export AQUIFER_RUNDIR=/tmp AQUIFER_TOKEN=$(<"$run/token")
export AQUIFER_ENGINE_TOKEN=$(<"$run/engine-token")
LD_LIBRARY_PATH=. timeout -k 2 $LIMIT ./$program"
		guest_wait "$VM_JOB" $((LIMIT + 5)) || g=$?
		grep -q "RDMA device rxe0" "$VM_SHARE/log.$VM_JOB" || g=1
		report 0 "$g" "$VM_JOB" "guest -> host: $program"
	done
}

# Everything goes into a capture, for the ICRCs; VM_CAPTURE keeps it.
CAPTURE=${VM_CAPTURE:-$TMP/capture}
CAPTURE_PID=
if command -v dumpcap >/dev/null; then
	ip netns exec "$VM_NS" dumpcap -q -P -B 16 -i tap0 -w "$CAPTURE" \
		-f "udp port 4791" >"$TMP/dumpcap" 2>&1 &
	CAPTURE_PID=$!
	PIDS+=("$CAPTURE_PID")
fi
for step; do
	case $step in
	check) check_pair -n "$ROUNDS" ;;
	ipv6) ipv6 ;;
	pingpong)
		# Two receives: the sender meets an empty queue now and then.
		both "-g 1" "-d rxe0 -g $GID" ibv_rc_pingpong -c -n 100 \
			-s 5000 -r 2
		;;
	perftest)
		for op in read write send; do
			perftest_pair "ib_${op}_bw" -s 65536 -n 100
		done
		perftest_pair ib_atomic_bw -A FETCH_AND_ADD -n 100
		perftest_pair ib_atomic_bw -A CMP_AND_SWAP -n 100
		;;
	latency)
		perftest_pair ib_read_lat -s 4096 -n 100
		perftest_pair ib_write_lat -s 64 -n 100
		perftest_pair ib_send_lat -s 3000 -n 100
		;;
	rping) rping_both ;;
	idle) idle ;;
	rsocket) rsocket_both ;;
	rack) rack ;;
	lose) lose ;;
	*) fail "no step $step" ;;
	esac
done
if [[ -n ${AQUIFER_NIC_LOSS_PPM:-} ]]; then
	guest "nft list table ip loss" >"$TMP/loss" || fail "nft in the guest"
	grep drop "$TMP/loss"
	! grep -q "packets 0 " "$TMP/loss" || fail "nothing was lost"
fi
if [[ -n $CAPTURE_PID ]]; then
	kill -INT "$CAPTURE_PID"
	wait "$CAPTURE_PID" || true
	"$(dirname "$0")/vm/check_icrc.py" "$CAPTURE" || {
		cat "$TMP/dumpcap"
		FAILED=$((FAILED + 1))
	}
fi
if [[ -n ${VM_SWITCH+set} ]]; then
	ip netns exec "$VM_NS" "$AQUIFER" switch --name vm --stats >"$TMP/stats" ||
		fail "the switch has ended: $(<"$TMP/switch.err")"
	json "$TMP/stats" "d['counters']['forwarded']" ||
		fail "nothing passed the switch"
fi
((FAILED == 0)) || fail "$FAILED pairs"
