/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach to a pager. */
#include "peer.h"

#include "proc.h"
#include "run_limits.h"

uint64_t run_peer_stack(pid_t pid)
{
	int64_t stack = run_proc_stat(pid, pid, 28);

	return stack < 0 ? 0 : (uint64_t)stack;
}

bool run_peer_is_below(pid_t pid, pid_t ancestor)
{
	for (unsigned i = 0; i < RUN_ANCESTORS_MAX && pid > 1; i++) {
		pid = (pid_t)run_proc_stat(pid, pid, 4);
		if (pid == ancestor)
			return true;
	}
	return false;
}

bool run_peer_is_allowed(uid_t uid, pid_t pid, uid_t user, pid_t supervisor)
{
	return uid == user || uid == 0 || run_peer_is_below(pid, supervisor);
}
