#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Six unmodified programs of Debian: the same output at a quarter of their memory
# as without Aquifer, never more than that resident, and at least half of the
# heap really far. run_programs_all.sh has the long list.
# shellcheck disable=SC2016 # the shell that runs the command expands $W
# shellcheck source=tests/e2e/run_programs_lib.sh
source "$(dirname "$0")/run_programs_lib.sh"

# Redis with 24 MiB of values; every one is read back.
redis() {
	local port pid
	port=$(free_port)
	watch
	timeout -k 5 60 "$AQUIFER" run --local 6M --json -- redis-server \
		--port "$port" --save '' >"$TMP/redis" 2>"$TMP/err" &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || fail "redis: $(cat "$TMP/err")"
	python3 - "$port" <<'PY' || fail "redis: values differ"
import random, socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
f = s.makefile('rb')
value = lambda i: random.Random(i).randbytes(4000)
for i in range(6000):
    v = value(i)
    s.sendall(b'*3\r\n$3\r\nSET\r\n$8\r\n%08d\r\n$4000\r\n%s\r\n' % (i, v))
    assert f.readline() == b'+OK\r\n'
for i in random.Random(9).sample(range(6000), 3000):
    s.sendall(b'*2\r\n$3\r\nGET\r\n$8\r\n%08d\r\n' % i)
    assert f.readline() == b'$4000\r\n'
    assert f.read(4002)[:4000] == value(i)
s.sendall(b'*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n')
PY
	wait "$pid" || fail "redis ended with $?: $(cat "$TMP/err")"
	grep '^{"local"' "$TMP/err" | tail -1 >"$TMP/report"
	unwatch
	checked redis
}

need redis-server sqlite3 xz gcc sort
cat "$W/lines" "$W/lines" "$W/lines" >"$W/long"
same sort 1700K 'exec sort -S 16M --parallel=1 $W/long'
same python3 4M 'exec /usr/bin/python3 $W/p.py'
same sqlite3 2500K 'exec sqlite3 :memory: ".read $W/q.sql"'
head -c 60000 "$W/lines" >"$W/small"
same xz 1700K 'exec xz -6 -T1 -c $W/small'
same gcc 3500K 'exec $(gcc -print-prog-name=cc1) -quiet -O0 $W/big.c -o -'
redis
