/* SPDX-License-Identifier: Apache-2.0 */
/* The process that a space belongs to, and its agent. */
#ifndef AQ_RUN_OWNER_PRIV_H
#define AQ_RUN_OWNER_PRIV_H

#include <sys/types.h>

#include "base/base.h"
#include "run_channel.h"

struct pager;
struct space;

/* owner.c */
/* The space is that process's from now on. */
void run_owner_set(struct pager *p, struct space *s, pid_t pid);
/* The process has ended: tells the agent, the last user of the memory. */
void run_owner_ended(struct pager *p, struct space *s);
/* Now and then: whether the process has executed something else, and whether
 * its agent is there. */
void run_owner_look(struct pager *p, struct space *s, bool is_thorough);
/* Kills the process, because its table can no longer follow its memory: it
 * would read wrong bytes. */
void run_owner_give_up(struct pager *p, struct space *s, const char *why);
void run_owner_release(struct pager *p, struct space *s);
/* Wakes the agent, if it sleeps, after a request to it. */
void run_owner_wake(struct run_channel *c);

/* The epoll mark for the process of a space, beside that of the space. */
static inline void *run_owner_who(struct space *s)
{
	return (char *)s + 1;
}

static inline struct space *run_owner_space(void *who)
{
	return (uintptr_t)who & 1 ? (struct space *)((char *)who - 1) : NULL;
}

#endif
