#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examples do what they say, on a rack as `aquifer up` makes it, and leave
# nothing there. Arguments: the programs.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 256M\n[engine e0]\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
# says PROGRAM LINE: the last line that it prints.
says() {
	local want=$1
	shift
	expect 0 env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} timeout -k 5 60 "$@"
	[[ $(tail -n 1 "$TMP/out") == "$want" ]] ||
		fail "$*: $(cat "$TMP/out" "$TMP/err")"
}
for program; do
	case ${program##*/} in
	example_async) says "sum of squares: 1240" "$program" ;;
	example_index) says "2 orders in May" "$program" ;;
	example_kv) says "visits: 3" "$program" ;;
	example_region) says "already locked by 7" "$program" ;;
	# Needs machines that share memory: coherent_memory runs it.
	example_shared) ;;
	example_verbs)
		expect 0 soft timeout -k 5 60 "$program"
		grep -q ': written by the NIC$' "$TMP/out" || fail verbs
		;;
	*) fail "no line is known of ${program##*/}" ;;
	esac
done
says "why                            it mostly waits for memory" \
	"$AQUIFER" walk build \
	"$AQ_SOURCE/examples/walk_find.c" -o "$TMP/find.walk"
if [[ -z $AQ_PRELOAD ]]; then
	export PYTHONPATH=$AQ_SOURCE/python
	export AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
	says "bob is gone" python3 "$AQ_SOURCE/examples/kv.py"
	says "sum of squares: 1240" python3 "$AQ_SOURCE/examples/async.py"
fi

# script LAST_LINE NAME PROGRAM...: a script, where those are installed.
script() {
	local want=$1 name=$2 program
	shift 2
	for program; do
		if ! command -v "$program" >/dev/null; then
			echo "left out: $name, because there is no $program"
			return 0
		fi
	done
	says "$want" sh "$AQ_SOURCE/examples/$name"
	echo "ok: $name"
}
if [[ -z $AQ_PRELOAD ]]; then
	export PATH=${AQUIFER%/*}:$PATH
	export AQUIFER_NBD_PLUGIN=${AQUIFER%/*}/src/apps/nbd/nbdkit-aquifer-plugin.so
	script "visits: 3" redis.sh redis-cli
	script "8 MB went to the rack and came back" nbd.sh nbdkit nbdcopy
	if ((EUID == 0)); then
		script "sorted: 1000000 lines" run.sh
		(unset AQUIFER_CONFIG AQUIFER_RACK_NAME
			script "ann: 42" two-machines.sh ip)
	fi
fi
expect 0 "$AQUIFER" region list --json
[[ $(json "$TMP/out" 'len(d["regions"])') == 0 ]] ||
	fail "they left regions behind: $(cat "$TMP/out")"
for source in "$AQ_SOURCE"/examples/*.{c,py,sh}; do
	(($(wc -l <"$source") < 100)) || fail "$source has 100 lines or more"
	grep -q "^| \`${source##*/}\`" "$AQ_SOURCE/examples/README.md" ||
		fail "examples/README.md does not name ${source##*/}"
done
