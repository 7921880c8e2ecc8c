#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A Redis server whose data are in the rack: a page counter, a value that ends by
# itself, and a second server for the same table. Needs a rack (aquifer up) and
# redis-cli.
#
#	sh redis.sh
set -eu
table=redis-example
gateways=

# start PORT: a gateway for the table, and wait until it answers.
start() {
	aquifer redis --table $table --capacity 10K --values 4M --port "$1" \
		>/dev/null &
	gateways="$gateways $!"
	until redis-cli -p "$1" ping >/dev/null 2>&1; do
		kill -0 $! # it did not start: its message says why
		sleep 0.1
	done
}

finish() {
	status=$?
	for pid in $gateways; do
		kill "$pid" 2>/dev/null || continue
		wait "$pid" || true
	done
	aquifer kv drop $table >/dev/null 2>&1 || true
	exit $status
}
trap finish EXIT

start 6381
redis-cli -p 6381 incr visits:front >/dev/null
redis-cli -p 6381 incr visits:front >/dev/null
redis-cli -p 6381 set session:1 ann ex 600 >/dev/null
echo "session:1 is $(redis-cli -p 6381 get session:1)'s," \
	"for at most $(redis-cli -p 6381 ttl session:1) s"

# A gateway keeps nothing, so a second one sees the same, at once.
start 6382
redis-cli -p 6382 incr visits:front >/dev/null
echo "visits: $(redis-cli -p 6381 get visits:front)"
