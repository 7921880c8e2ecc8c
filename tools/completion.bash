# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of `aquifer`. Commands, verbs, options and what may follow them come
# from the binary itself, names of things from the rack that the line is about;
# only the laboratory's options stand here.

# _aquifer_racks: the racks of this machine that have something running.
_aquifer_racks() {
	local parent socket
	if [[ -n ${AQUIFER_RUNDIR:-} ]]; then
		set -- "$AQUIFER_RUNDIR"
	else
		set -- /run/aquifer "${XDG_RUNTIME_DIR:-/run/user/$UID}/aquifer" \
			"/tmp/aquifer-$UID"
	fi
	for parent; do
		for socket in "$parent"/*/*.sock; do
			[[ -S $socket ]] || continue
			socket=${socket%/*}
			echo "${socket##*/}"
		done
	done | sort -u
}

# _aquifer_names KIND: regions, or the tables (kv) and indexes that lie in some.
_aquifer_names() {
	local pattern='\(.*\)'
	case $1 in
	kv) pattern='kv-[0-9a-f]\{7\}-\(.*\)' ;;
	index) pattern='i[tv]-\(.*\)' ;;
	esac
	"${COMP_WORDS[0]}" "${_aquifer_rack[@]}" region list --timeout 1000 --json \
		2>/dev/null | sed -n "s/^ *\"name\": \"$pattern\",\$/\1/p" | sort -u
}

# _aquifer_takes OPTION: whether a value follows it, by --help in $help.
_aquifer_takes() {
	[[ $'\n'$help == *$'\n'"  $1 "[![:space:]]* ]]
}

# _aquifer_value OPTION: sets `names` to what may follow it, or `files`.
_aquifer_value() {
	case $1 in
	--rack) names=$(_aquifer_racks) files=yes ;;
	--config | --out | --output | --include | --trace | --audit | --tls-* | --password-file | --socket)
		files=yes
		;;
	--table) names=$(_aquifer_names kv) ;;
	--figure)
		[[ $command == sim ]] &&
			names="all "$("${COMP_WORDS[0]}" sim "${COMP_WORDS[2]}" \
				--figure all --help 2>/dev/null |
				sed -n 's/^      \(.\{10\}\).*/\1/p')
		;;
	--fabric) names="ethernet edm edm64 cxl" ;;
	*) # One of several words: "  --nic soft|hw|auto  which NIC".
		names=$(sed -n "s/^  $1 \([^ ]*|[^ ]*\).*/\1/p" <<<"$help" |
			tr '|' '\n' | grep '^[a-z0-9-]*$')
		;;
	esac
}

# _aquifer_word VERB COUNT: the same for the word after so many others.
_aquifer_word() {
	case $command in
	help) names=$("${COMP_WORDS[0]}" help 2>/dev/null |
		sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') ;;
	swap) [[ -z $1 ]] && names="on off status" ;;
	up | down | status) files=yes ;;
	walk)
		[[ $1 == build || $1 == show || $1 == check ]] && files=yes
		if [[ $1 == run || $1 == plan ]]; then
			[[ $2 == 1 ]] && files=yes
			[[ $2 == 2 ]] && names=$(_aquifer_names region)
			return
		fi
		;;&
	kv | index | region)
		if [[ -n $1 ]]; then
			[[ $2 == 1 && $1 != create ]] &&
				names=$(_aquifer_names "$command")
			return
		fi
		;;&
	exec | run)
		names=$(compgen -c -- "$word")
		;;
	*) [[ -z $1 ]] && names=$(sed -n \
		'/^names:/,/^$/s/^  \([a-z-]*\) .*/\1/p' <<<"$help") ;;
	esac
}

_aquifer() {
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local names='' files='' help='' command='' verb='' count=0 i
	local _aquifer_rack=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--rack | --config)
			_aquifer_rack=("${COMP_WORDS[@]:i:2}")
			((++i))
			;;
		-*) ! _aquifer_takes "${COMP_WORDS[i]}" || ((++i)) ;;
		*)
			if [[ -z $command ]]; then
				command=${COMP_WORDS[i]}
				help=$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null)
				continue
			fi
			verb=${verb:-${COMP_WORDS[i]}}
			((++count))
			;;
		esac
	done
	COMPREPLY=()
	if [[ $previous == --* ]] && ((i > COMP_CWORD)) ||
		[[ $previous == --rack || $previous == --config ]]; then
		_aquifer_value "$previous"
	elif [[ -z $command && $word == -* ]]; then
		names="--verbose --log-json --config --rack --version --help"
	elif [[ $word == -* ]]; then
		names="--help $(sed -n 's/^  \(--[a-z-]*\).*/\1/p' <<<"$help")"
		[[ $command == bench ]] &&
			names+=" --quick --check --rounds --window --only --busy" &&
			names+=" --port --records --store --dir --jobs --processes" &&
			names+=" --entries --fill-seeds --json"
		[[ $command == sim ]] &&
			names+=" --seed --seeds --jobs --fabric --figure --out --bug" &&
			names+=" --points --model --steer --quick --detail --system --json"
	elif [[ -z $command ]]; then
		command=help _aquifer_word '' 0
	else
		_aquifer_word "$verb" "$count"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
	[[ -z $files ]] ||
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
	# A word that is not known yet: options.
	if [[ -z $names$files && -z $word ]]; then
		names="--help $(sed -n 's/^  \(--[a-z-]*\).*/\1/p' <<<"$help")"
		mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
	fi
}
complete -o default -F _aquifer aquifer
