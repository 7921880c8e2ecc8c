#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdma_cm between two machines (network namespaces): the listener is one of
# several processes that share the address, so its requests and those to the
# others come to whoever the kernel picks.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need rping ucmatose udaddy rstream udpong ip nsenter
need_nic
unshare -n true 2>/dev/null || skip "network namespaces are not allowed here"

# host N: a namespace with a process to hold it, at 10.77.0.N.
host() {
	local own
	unshare -n sleep 120 &
	HOST[$1]=$!
	PIDS+=("$!")
	for _ in {1..100}; do
		own=$(readlink "/proc/$!/ns/net") || own=
		[[ -n $own && $own != $(readlink /proc/self/ns/net) ]] &&
			return 0
		sleep 0.02
	done
	fail "no namespace"
}
HOST=()
host 1
host 2
# On host N: the words.
on() {
	local n=$1
	shift
	nsenter -t "${HOST[$n]}" -n env AQUIFER_NIC_ADDRESS=10.77.0."$n" "$@"
}
veth aq-e2e-1 "${HOST[1]}" aq-e2e-2 "${HOST[2]}" || skip "no veth interfaces"
for n in 1 2; do
	on "$n" ip addr add 10.77.0."$n"/24 dev aq-e2e-"$n"
	on "$n" ip link set aq-e2e-"$n" up
	on "$n" ip link set lo up
done
# serve WORDS...: on host 1, in the background.
serve() {
	on 1 "${SOFT[@]}" timeout -k 5 60 "$@" >"$TMP/server.${#PIDS[@]}" 2>&1 &
	SERVER_PID=$!
	PIDS+=("$SERVER_PID")
	for _ in {1..400}; do
		# shellcheck disable=SC2016 # awk's own dollars
		on 1 awk -v port="$PORT" '$4 == "00010000" &&
			$8 ~ ":cm:[0-9a-f]+:" port ":" { found = 1 }
			END { exit !found }' /proc/net/unix && return 0
		kill -0 "$SERVER_PID" || fail "server: $(cat "$TMP"/server.*)"
		sleep 0.05
	done
	fail "'$*' does not listen"
}
# visit WORDS...: from host 2; both ends must succeed.
visit() {
	local pid=$1
	shift
	on 2 "${SOFT[@]}" timeout -k 5 60 "$@" >"$TMP/client" 2>&1 || {
		cat "$TMP/client" "$TMP"/server.*
		fail "client: $*"
	}
	wait "$pid" || fail "server of '$*': $(cat "$TMP"/server.*)"
	echo "ok: $*"
}

servers=()
for PORT in 7001 7002 7003; do
	serve rping -s -a 10.77.0.1 -p "$PORT" -V -C 10
	servers+=("$SERVER_PID")
done
PORT=7471
serve ucmatose
ucmatose=$SERVER_PID
visit "$ucmatose" ucmatose -s 10.77.0.1
for i in 2 0 1; do
	visit "${servers[i]}" rping -c -a 10.77.0.1 -p "700$((i + 1))" -V -C 10
done
PORT=7174
serve udaddy
visit "$SERVER_PID" udaddy -s 10.77.0.1

# rsockets: a stream, and datagrams, whose address is a UDP port.
PORT=7471
words=(rstream -S 100000 -C 10 -T b -T v)
serve "${words[@]}"
visit "$SERVER_PID" "${words[@]}" -s 10.77.0.1
on 1 "${SOFT[@]}" timeout -k 5 60 udpong -b 10.77.0.1 >"$TMP/udpong" 2>&1 &
PIDS+=("$!")
for _ in {1..400}; do
	on 1 grep -q ":1C06 " /proc/net/udp && break
	sleep 0.05
done
on 2 "${SOFT[@]}" timeout -k 5 60 udpong -s 10.77.0.1 -S 64 -C 20 -T e \
	>"$TMP/client" 2>&1 || fail "udpong: $(cat "$TMP/client" "$TMP/udpong")"
echo "ok: udpong"
