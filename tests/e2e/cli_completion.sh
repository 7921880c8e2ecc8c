#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bash completes commands, verbs, options, their values, and names of racks,
# regions, tables and indexes.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tools/completion.bash
source "$AQ_SOURCE/tools/completion.bash"

# completes LINE WANT...: all of WANT are among the answers; a word of WANT that
# begins with ! is not. The line ends where the cursor is.
completes() {
	local line=$1 want
	shift
	read -ra COMP_WORDS <<<"$line"
	[[ $line != *" " ]] || COMP_WORDS+=("")
	COMP_WORDS[0]=$AQUIFER
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	set +eu
	_aquifer
	set -eu
	for want; do
		if [[ $want == !* ]]; then
			[[ " ${COMPREPLY[*]} " != *" ${want#!} "* ]] ||
				fail "'$line' offers ${want#!}"
		else
			[[ " ${COMPREPLY[*]} " == *" $want "* ]] ||
				fail "'$line' does not offer $want: ${COMPREPLY[*]}"
		fi
	done
}

complete -p aquifer | grep -q -- "-F _aquifer aquifer" || fail "no completion"
completes "aquifer " kv index status
completes "aquifer st" status !kv
completes "aquifer --" --rack --config
completes "aquifer help re" region redis
completes "aquifer --rack x kv " create get
completes "aquifer kv " create drop resize scan
completes "aquifer kv g" get !create
completes "aquifer kv create --ha" --hash
completes "aquifer kv create t 9 --hash " dependent block independent
completes "aquifer kv --j" --json
completes "aquifer run --mode " static dynamic-1m two-sided chain sparse
completes "aquifer swap on --mode ch" chain !static
completes "aquifer run --overflow " keep fail !SIZE
completes "aquifer run --local 4M -- tru" true
completes "aquifer info --nic " soft hw auto
completes "aquifer swap " on off status
cd "$TMP"
completes "aquifer up rack" rack.ini
completes "aquifer status --rack ra" rack.ini
completes "aquifer walk " build show check run plan list drop
completes "aquifer walk build ra" rack.ini
completes "aquifer walk build f.c --em" --embed
echo "ok: without a rack"

printf '[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create scratch 1M
expect 0 "$AQUIFER" kv create users 100 --extents 1M
expect 0 "$AQUIFER" index create orders --memory 1M
expect 0 "$AQUIFER" index create seen --kind versions --room 10
completes "aquifer status --rack " "$AQUIFER_RACK_NAME"
completes "aquifer --rack " "$AQUIFER_RACK_NAME"
completes "aquifer region delete " scratch
completes "aquifer region stat s" scratch
completes "aquifer region create " !scratch
completes "aquifer kv get " users !scratch !orders
completes "aquifer kv get --json u" users
completes "aquifer kv get users " !users
completes "aquifer kv --json stat " users
completes "aquifer index get " orders seen !users
completes "aquifer redis --table " users
completes "aquifer --rack nothing-here kv get " !users
completes "aquifer kv get --rack $AQUIFER_RACK_NAME " users
echo "ok: names"
