#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One page's blocks, in its order, in one shell, as a reader would type them.
# docs_run.sh starts it in namespaces of its own: when it ends, everything that
# the page has started ends with it. Argument: the folder of docs_blocks.py.
set -eEuo pipefail
docs_dir=$1
docs_blocks=$(dirname "$(realpath "$0")")/docs_blocks.py
docs_build=$(dirname "$AQUIFER")
docs_ran=0 docs_no=0 docs_text=0

# What a fresh Debian machine has: a network with lo only, and no rack.
ip link set lo up
for docs_mount in /dev/shm /run /var/lib /etc/aquifer; do
	[[ ! -d $docs_mount ]] || mount -t tmpfs none "$docs_mount"
done
for docs_name in $(compgen -e AQUIFER_); do
	unset "$docs_name"
done
unset LD_LIBRARY_PATH XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_STATE_HOME
mkdir "$docs_dir/home" "$docs_dir/tree"
cd "$docs_dir/tree"
for docs_name in include examples dist docs python; do
	ln -s "$AQ_SOURCE/$docs_name" .
done
ln -s "$docs_build" build
export HOME=$docs_dir/home AQ_SOURCE
docs_page=$(cat "$docs_dir/page")
# A page that says build/aquifer is read in the tree, others where it is
# installed.
if ! grep -q 'build/aquifer' "$AQ_SOURCE/$docs_page"; then
	export PATH=$docs_build:$PATH LD_LIBRARY_PATH=$docs_build
fi
printf 'Name: aquifer\nDescription: -\nVersion: 0\nCflags: %s\nLibs: %s\n' \
	"-I$AQ_SOURCE/include" "-L$docs_build -laquifer" >"$docs_dir/aquifer.pc"
export PKG_CONFIG_PATH=$docs_dir
export PYTHONPATH=$AQ_SOURCE/python PYTHONDONTWRITEBYTECODE=1

# docs_fail WORDS [LINE]: of the page, whose output standard error may be now.
exec 4>&2
docs_fail() {
	trap - ERR
	{
		echo "$docs_page:$((docs_line + ${2:-0})): $1"
		tail -n 20 "$docs_out"
	} >&4
	exit 1
}

# Where a reader waits a second, a busy machine may need longer: until nobody of
# this page wants a processor, five times in turn.
sleep() {
	local quiet=0
	command sleep "$1"
	for _ in {1..300}; do
		if ps -eLo state=,comm= | awk '/^[RD]/ && $2 != "ps" { busy = 1 }
			END { exit !busy }'; then
			quiet=0
		else
			((++quiet < 5)) || return 0
		fi
		command sleep 0.02
	done
}

# Commands are sourced, so that variables, functions and jobs stay; a failure
# ends the page with its line.
docs_commands() {
	local status=0
	if [[ $docs_how == fails ]]; then
		trap - ERR
		set +e
		# shellcheck disable=SC1090 # a block of the page
		source "$1" >"$docs_out" 2>&1 </dev/null
		status=$?
		set -e
		((status)) || docs_fail "this should have failed"
		return 0
	fi
	trap 'docs_fail "ended with $?: $BASH_COMMAND" "$LINENO"' ERR
	# shellcheck disable=SC1090 # a block of the page
	source "$1" >"$docs_out" 2>&1 </dev/null
	trap - ERR
}

docs_block() {
	local flags
	case $docs_kind in
	sh) docs_commands "$1" ;;
	c)
		read -ra flags < <(pkg-config --cflags --libs aquifer)
		cc -Wall -Wextra -Werror -o "$docs_dir/program" "$1" "${flags[@]}" \
			"-Wl,-rpath,$docs_build" >"$docs_out" 2>&1 ||
			docs_fail "this does not compile"
		"$docs_dir/program" >"$docs_out" 2>&1 </dev/null ||
			docs_fail "this program ended with $?"
		;;
	py) LD_LIBRARY_PATH=$docs_build AQUIFER_LIB=$docs_build/libaquifer.so.1 \
		python3 "$1" >"$docs_out" 2>&1 </dev/null ||
		docs_fail "this program ended with $?" ;;
	ini) "$docs_aquifer" --config "$1" info >"$docs_out" 2>&1 ||
		docs_fail "these settings are wrong" ;;
	*) docs_fail "nobody runs this" ;;
	esac
}

docs_aquifer=$docs_build/aquifer
# A manual page that does not say how a rack begins takes one for granted.
if [[ $docs_page == *.scd ]] &&
	! grep -qE '^aquifer (up|memory)' "$AQ_SOURCE/$docs_page"; then
	"$docs_aquifer" up >"$docs_dir/up" 2>&1
fi
while IFS=$'\t' read -r docs_name docs_line docs_how docs_kind docs_argument <&3; do
	echo "$docs_page:$docs_line" >"$docs_dir/at"
	case $docs_how in
	run | fails)
		docs_out=$docs_dir/$docs_name.out
		: >"$docs_out"
		docs_block "$docs_dir/$docs_name"
		((++docs_ran))
		;;
	prints)
		"$docs_blocks" same "$docs_argument" "$docs_dir/$docs_name" "$docs_out" ||
			docs_fail "this is not what is printed:"
		((++docs_ran))
		;;
	file)
		cp "$docs_dir/$docs_name" "$docs_argument"
		((++docs_ran))
		;;
	text) ((++docs_text)) ;;
	no)
		echo "$docs_page:$docs_line: not run: $docs_argument"
		((++docs_no))
		;;
	esac
done 3<"$docs_dir/plan"
echo "$docs_ran $docs_no $docs_text" >"$docs_dir/count"
