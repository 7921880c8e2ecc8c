# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of `aquifer`. Commands, verbs, options and what may follow them come
# from the binary itself; only the laboratory's options stand here.

_aquifer() {
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local names='' help='' i command=
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--config) ((++i)) ;;
		-*) ;;
		*)
			command=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	if [[ -z $command || $command == help ]]; then
		names=$("${COMP_WORDS[0]}" help 2>/dev/null |
			sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
		[[ -z $command ]] && names+=" --verbose --log-json --config"
		mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
		return
	fi
	help=$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null)
	if [[ $previous == "$command" && $word != -* ]]; then
		names=$(sed -n '/^names:/,/^$/s/^  \([a-z-]*\) .*/\1/p' <<<"$help")
		[[ $command == swap ]] && names="on off status"
	elif [[ $previous == --* ]]; then
		# One of several words: "  --nic soft|hw|auto  which NIC".
		names=$(sed -n "s/^  $previous \([a-z|]*|[a-z|]*\).*/\1/p" \
			<<<"$help" | tr '|' ' ')
		[[ $command == sim && $previous == --figure ]] &&
			names="all "$("${COMP_WORDS[0]}" sim "${COMP_WORDS[2]}" --figure all \
				--help 2>/dev/null | sed -n 's/^      \(.\{10\}\).*/\1/p')
		[[ $command == sim && $previous == --fabric ]] &&
			names="ethernet edm cxl"
	fi
	if [[ -z $names && $word != -* ]]; then
		case $command in
		up | down | status)
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
			;;
		exec | run)
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
			return
			;;
		esac
	fi
	if [[ -z $names ]]; then
		names="--help $(sed -n 's/^  \(--[a-z-]*\).*/\1/p' <<<"$help")"
		[[ $command == bench ]] &&
			names+=" --quick --check --rounds --window --only --busy" &&
			names+=" --port --records --store --dir --jobs --processes" &&
			names+=" --entries --fill-seeds --json"
		[[ $command == sim ]] &&
			names+=" --seed --seeds --jobs --fabric --figure --out --bug" &&
			names+=" --points --model --steer --quick --detail --system --json"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
}
complete -o default -F _aquifer aquifer
