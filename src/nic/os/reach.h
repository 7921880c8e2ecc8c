/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaching: a NIC executes READs and WRITEs in the memory of a peer on this
 * machine by process_vm_readv and process_vm_writev, so that nobody has to run
 * there. Only between processes of one user and one pid namespace; whether the
 * call may be made is the kernel's to say, each time, by its ptrace rule. So
 * nobody reaches what it could not reach without us, and the checks here are
 * those of programs that mean well: the key's.
 *
 * A key is asked for as a mapping is (direct.h). The owner says where its
 * memory is, and its epoch, a word of its bell page that changes whenever any
 * key, queue pair or memory that it gave away ends. The pair REACH-1:
 *
 *  The user says in its own bell page that it reaches, then looks at the
 *  epoch and makes the call, in a restartable sequence (reach_call.h).
 *  The owner changes the epoch, then looks whether a user reaches, and waits
 *  until it has ended. After that nothing that was given away before happens
 *  any more, and the owner's program may use its memory for something else.
 *
 * A user that is stopped (SIGSTOP) is not waited for: it is not inside the
 * call, and behind the stop it looks at the epoch again. One that a debugger
 * holds is waited for.
 *
 * Pids are used again. The owner's NIC thread holds a robust mutex in its bell
 * page, whose word the kernel changes when the thread ends for whatever reason,
 * exec included: before the memory is replaced, and before the pid is free. The
 * sequence looks at that word, too.
 *
 * Only memory that is watched (unmap.h) is given away: its owner hears of
 * unmapping before the address is used again, and no page of it waits for
 * another program, so the call ends.
 */
#ifndef AQ_REACH_H
#define AQ_REACH_H

#include <stdatomic.h>

#include "base/env.h"

struct bell;
struct cable;
struct cable_map_rep;
struct nic_mr_attr;
struct os_host;

/* A peer's key. */
struct reach_map {
	struct env_direct d; /* base is NULL */
	struct cable *cable;
	uint64_t addr; /* of d.iova, in the peer */
	uint32_t epoch;
	uint32_t life;
};

/* When a host reaches; the lock is held. */
struct reach {
	bool is_able;  /* this system has what it takes */
	bool is_given; /* something, in this epoch */
	/* Nothing is given away; without the lock, too. */
	_Atomic bool is_barred;
	uint32_t strikes;  /* late answers, as long as they come in a row */
	uint64_t until_ns; /* small requests reach until then */
	uint64_t span_ns;
};

/* ---- the owner ---------------------------------------------------------- */

/* The NIC thread begins and ends. */
void reach_life_begin(struct os_host *h);
void reach_life_end(struct os_host *h);
/* Gives the key's memory to the peer; false: it goes by frames. */
bool reach_give(struct cable *c, const struct nic_mr_attr *attr,
		struct cable_map_rep *rep) MUST_CHECK;
/* Takes everything back, and returns when nobody reaches any more. The lock is
 * held. */
void reach_revoke(struct os_host *h);
/*
 * For who must not wait for the lock: nothing begins any more, and nothing is
 * given away until reach_unbar; what is under way goes on. With the lock,
 * reach_revoke waits for that.
 */
void reach_bar(struct os_host *h);
void reach_unbar(struct os_host *h);

/* ---- the user ----------------------------------------------------------- */

/* NULL: the answer cannot be used. */
struct reach_map *reach_map_create(struct cable *c,
				   const struct cable_map_rep *rep);
bool reach_map_is_valid(const struct reach_map *m);

/* Env operations. */
bool reach_is_wanted(struct env *env, uint32_t len_bytes);
int reach_copy(struct env *env, const struct env_direct *d,
	       enum env_direct_op op, uint64_t offset,
	       const struct env_piece *near, unsigned count);

/* A driver has waited long for an answer; or has found something at once. */
void reach_note_late(struct os_host *h, uint64_t now_ns);
static inline void reach_note_prompt(struct reach *r)
{
	if (r->strikes)
		r->strikes--;
}

#endif
