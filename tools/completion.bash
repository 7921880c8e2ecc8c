# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of `aquifer`. The names come from the binary itself.

_aquifer() {
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local names i command=
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
	elif [[ $previous == --nic ]]; then
		names="soft hw auto"
	elif [[ $command == region && $previous == region ]]; then
		names="create list stat resize delete"
	elif [[ $command == swap && $previous == swap ]]; then
		names="on off status"
	elif [[ $command == bench && $previous == bench ]]; then
		names=$("${COMP_WORDS[0]}" bench --help 2>/dev/null |
			sed -n 's/^  \([a-z]*\) .*/\1/p')
	elif [[ $command == index && $previous == index ]]; then
		names="create drop stat get put del scan fill check"
	elif [[ $command == index && $previous == --kind ]]; then
		names="tree versions"
	elif [[ $command == kv && $previous == kv ]]; then
		names="create drop stat resize get put del scan fill check"
	elif [[ $command == up || $command == down || $command == status ]] &&
		[[ $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	elif [[ $command == sim && $previous == sim ]]; then
		names=$("${COMP_WORDS[0]}" sim --help 2>/dev/null |
			sed -n '/^names:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
	elif [[ $command == sim && $previous == --figure ]]; then
		names="all "$("${COMP_WORDS[0]}" sim "${COMP_WORDS[2]}" --figure all \
			--help 2>/dev/null | sed -n 's/^      \(.\{10\}\).*/\1/p')
	elif [[ $command == sim && $previous == --fabric ]]; then
		names="ethernet edm cxl"
	elif [[ $previous == --facade ]]; then
		names="auto off"
	elif [[ $command == exec || $command == run ]] && [[ $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
		return
	else
		names="--help --json"
		[[ $command == memory ]] &&
			names+=" --size --name --rack --listen --tls-cert --tls-key"
		[[ $command == run ]] &&
			names+=" --local --min-size --prefetch --copies --mode --pager-threads --no-direct --stats --rack"
		[[ $command == swap ]] &&
			names+=" --size --copies --mode --device --priority --rack" &&
			names+=" --timeout --server"
		[[ $command == switch ]] &&
			names+=" --name --port --program --fault --rack --for" &&
			names+=" --resources --stats --tell --trace"
		[[ $command == engine ]] &&
			names+=" --name --rack --batch --flush-us --probe-max-us --memory --listen --tls-cert --tls-key"
		[[ $command == redis ]] &&
			names+=" --table --port --bind --socket --password-file"
		[[ $command == redis ]] &&
			names+=" --capacity --values --max-clients --timeout"
		[[ $command == exec || $command == info ]] && names+=" --nic"
		[[ $command == top ]] && names+=" --once --interval"
		[[ $command == region ]] &&
			names+=" --nodes --stripe --node --timeout --switch-atomics"
		[[ $command == kv ]] &&
			names+=" --entry --row --extents --rows-per-lock --clients" &&
			names+=" --failure --hash --node --host-locks --word-locks" &&
			names+=" --ttl --keys --count --size --repair" &&
			names+=" --nodes --copies --capacity"
		[[ $command == index ]] &&
			names+=" --kind --memory --key --value --node-bytes" &&
			names+=" --locks --host-locks --switch-locks --room --clients --failure" &&
			names+=" --node --from --to --count --keys --size --threads"
		[[ $command == exec ]] && names+=" --facade"
		[[ $command == bench ]] &&
			names+=" --quick --check --rounds --window --only --port" &&
			names+=" --records --store --dir --busy"
		[[ $command == sim ]] &&
			names+=" --seed --seeds --jobs --fabric --figure --bug" &&
			names+=" --points --model --steer --quick --detail --system"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
}
complete -o default -F _aquifer aquifer
