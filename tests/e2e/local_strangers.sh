#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What another user of the machine can do to a rack of root's: nothing. It tries
# to connect to NICs and switches, to be a NIC or a switch, to take all names
# first, to make the node call it by a datagram, and to have the UDP port first.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

need setpriv ip ibv_devinfo
((EUID == 0)) || skip "needs root, to be somebody else"
# An address that is not loopback's.
[[ -n ${AQ_OWN_NET:-} ]] || skip "no network namespaces"
ip addr add 10.9.0.1/24 dev lo

# Whoever may enter the folder meets the rack's own door.
chmod 755 "$TMP"
# An array, so that $! is the stranger's own pid.
STRANGER=(env PATH=/usr/bin:/bin setpriv --reuid 65534 --regid 65534
	--clear-groups python3 -I "$TMP/stranger.py")
cat >"$TMP/stranger.py" <<'PY'
import os, socket, struct, sys, time
what, args = sys.argv[1], sys.argv[2:]

def seqpacket():
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

def refused(do):
    try:
        do()
    except OSError as e:
        return e.strerror
    sys.exit(f"a stranger could {what} {args}")

if what == "connect":
    for path in args:
        refused(lambda: seqpacket().connect(path))
elif what == "bind":
    refused(lambda: seqpacket().bind(args[0]))
elif what == "hold_names":  # as they were called once: all of them
    names = [f"\0aquifer/{args[0]}/127.0.0.1/{n}" for n in range(1, 1024)]
    names.append(f"\0aquifer/{args[0]}/switch/s0")
    held = []
    for name in names:
        s = seqpacket()
        s.bind(name)
        s.listen(8)
        held.append(s)
    print("held", flush=True)
    time.sleep(600)
elif what == "hold_udp":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("10.9.0.1", 4791))
    print("held", flush=True)
    time.sleep(600)
elif what == "call_me":  # a datagram for every slot: who has it is called
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for slot in range(1, 1024):
        bth = struct.pack(">BBHII", 4, 0, 0xffff, slot << 14 | 2, 0)
        s.sendto(bth + bytes(16), ("10.9.0.1", 4791))
PY

# hold WHAT ARGS...: in the background until $HOLDER is killed.
hold() {
	: >"$TMP/held" # of the one before
	"${STRANGER[@]}" "$@" >"$TMP/held" 2>&1 &
	HOLDER=$!
	PIDS+=("$HOLDER")
	for _ in {1..200}; do
		grep -q held "$TMP/held" && return 0
		kill -0 "$HOLDER" || fail "$(<"$TMP/held")"
		sleep 0.05
	done
	fail "the stranger does not get what it wants: $(<"$TMP/held")"
}

# 1. All names are taken first, and nobody minds.
ulimit -n 4096
hold hold_names "$AQUIFER_RACK_NAME"
start_node
expect 0 soft ibv_devinfo
! AQUIFER_NIC_PORT=switch:s0 soft ibv_devinfo -d aq0 >"$TMP/out" 2>&1 ||
	fail "a NIC plugged into a stranger's switch: $(<"$TMP/out")"
kill "$HOLDER"
wait "$HOLDER" 2>/dev/null || true

# 2. What is there cannot be reached, and nothing put beside it.
"$AQUIFER" switch --name s0 >"$TMP/switch" 2>&1 &
PIDS+=($!)
shopt -s nullglob
for _ in {1..200}; do
	switch=("$DIR"/*:switch:s0)
	((${#switch[@]})) && break
	sleep 0.05
done
slots=("$DIR"/*:127.0.0.1:*)
((${#slots[@]} && ${#switch[@]})) || fail "no sockets in $DIR: $(ls "$DIR")"
for path in "${slots[@]}" "${switch[@]}"; do
	# The test of the test: root can.
	python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])' "$path"
done
# Who does get there and says nothing is sent away, by both.
for path in "${slots[0]}" "${switch[0]}"; do
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.settimeout(30)
sys.exit(len(s.recv(64)))' "$path" || fail "silence is heard out at $path"
done
"${STRANGER[@]}" connect "${slots[@]}" "${switch[@]}" "$SOCKET"
"${STRANGER[@]}" bind "${slots[0]%:*}:1000"
"${STRANGER[@]}" bind "${switch[0]%:*}:s1"
grep -q '@aquifer/' /proc/net/unix && fail "an abstract name: $(grep @aquifer /proc/net/unix)"
ask "$ADMIN" 200 GET /v1/status
stop_node

# 3. On an address of the network: datagrams call nobody to the stranger.
export AQUIFER_NIC_ADDRESS=10.9.0.1
start_node
hold hold_names "$AQUIFER_RACK_NAME"
"${STRANGER[@]}" call_me
ask "$ADMIN" 200 GET /v1/status
stop_node
kill "$HOLDER"
wait "$HOLDER" 2>/dev/null || true

# 4. A port that a stranger has is no network: the node says so and ends.
hold hold_udp
expect 1 "$AQUIFER" memory --size 64M
grep -q 'user 65534, who is not trusted' "$TMP/err" || fail "$(<"$TMP/err")"
grep -q 'nic.port = cable' "$TMP/err" || fail "$(<"$TMP/err")"
export AQUIFER_NIC_PORT=cable
start_node
stop_node
echo "ok: strangers stay outside"
