#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a container of Aquifer begins with: aquifer-container COMMAND [OPTION...]
# becomes `aquifer COMMAND ...` after what a container needs before:
#
# - The NIC has the container's address, unless AQUIFER_NIC_ADDRESS says another.
# - A token in /run/secrets/token is the rack's: nodes take it, others use it.
# - A gateway waits for its nodes. With COPIES it makes its table first, if there
#   is none, with so many copies of everything.
#
# aquifer-container health ends with 0 if what runs here serves.
set -euo pipefail

if [[ -z ${AQUIFER_NIC_ADDRESS:-} ]]; then
	read -r address _ < <(hostname -i)
	[[ $address == 127.* ]] || export AQUIFER_NIC_ADDRESS=$address
fi
secret=/run/secrets/token
if [[ -e $secret && ${1:-} != memory ]]; then
	AQUIFER_TOKEN=$(<"$secret")
	export AQUIFER_TOKEN
fi

# ping: whether the gateway answers as a Redis server that has its data.
ping() {
	local answer
	exec 3<>/dev/tcp/127.0.0.1/6379
	printf 'PING\r\n' >&3
	read -r -t 5 answer <&3
	[[ $answer == +PONG* ]]
}

case ${1:-help} in
health)
	if grep -qz '^redis$' /proc/1/cmdline; then
		ping
	else
		aquifer status >/dev/null
	fi
	exit
	;;
memory)
	if [[ -e $secret ]]; then
		rack=${AQUIFER_RACK_NAME:-local}
		install -d -m 700 "/run/aquifer/$rack"
		install -m 600 "$secret" "/run/aquifer/$rack/token"
		# One that was kept when this container ran before would count.
		rm -f "${AQUIFER_STATEDIR:-/var/lib/aquifer}/$rack/token"
	fi
	;;
redis)
	for _ in {1..120}; do
		! aquifer status >/dev/null 2>&1 || break
		sleep 0.5
	done
	# Not beside one that cannot be reached just now.
	if [[ -n ${COPIES:-} ]]; then
		why=$(aquifer kv stat redis --json 2>&1 >/dev/null) || true
		[[ $why != *'"errno":"ENOENT"'* ]] ||
			aquifer kv create redis 100K --copies "$COPIES"
	fi
	;;
esac
exec aquifer "$@"
