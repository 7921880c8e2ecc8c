#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's librspreload turns the sockets of an ordinary program into rsockets;
# in the form for servers that fork, it moves a TCP connection to one later.
# Usage: rs_preload.sh ECHO_PROGRAM serve|fork
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
need cc
lib=$(dirname "$(cc -print-file-name=librdmacm.so.1)")/rsocket/librspreload.so
[[ -e $lib ]] || skip "librspreload is not installed"
echo_program=$1
port=$(free_port)
PRELOAD=(env LD_PRELOAD="$AQ_PRELOAD $lib")

if [[ $2 == fork ]]; then
	PRELOAD+=(RDMAV_FORK_SAFE=1)
	# A process that was killed may have left it taken.
	rm -f /dev/shm/sem.rsocket_fork
	"${SOFT[@]}" timeout -k 5 60 "${PRELOAD[@]}" "$echo_program" fork \
		"$port" >"$TMP/server" 2>&1 &
	SERVER_PID=$!
	PIDS+=("$SERVER_PID")
	wait_port "$port" "$SERVER_PID" || fail "server: $(cat "$TMP/server")"
else
	start_cm_server "${PRELOAD[@]}" "$echo_program" serve "$port"
	# It is no TCP: who knows nothing of rsockets finds nobody there.
	if "$echo_program" ask "$port" 2>/dev/null; then
		fail "the server uses TCP"
	fi
fi
soft timeout -k 5 60 "${PRELOAD[@]}" "$echo_program" ask "$port" \
	>"$TMP/client" 2>&1 || fail "client: $(cat "$TMP/client")"
wait "$SERVER_PID" || fail "server: $(cat "$TMP/server")"
if [[ $2 == fork && ! -e /dev/shm/sem.rsocket_fork ]]; then
	fail "the connection stayed with TCP"
fi
cat "$TMP/client"
