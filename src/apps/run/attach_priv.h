/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are attaching. */
#ifndef AQ_RUN_ATTACH_PRIV_H
#define AQ_RUN_ATTACH_PRIV_H

#include <sys/types.h>

#include "base/base.h"
#include "share.h"

struct pager;
struct space;

/* A process that is attaching. */
enum attach_state {
	ATTACH_NONE,
	ATTACH_SILENT, /* connected, without a hello */
	ATTACH_NEW,    /* has its share, makes its userfaultfd */
	ATTACH_FORKED, /* has its share, did not ring yet; no connection */
};

struct attachment {
	enum attach_state state;
	int fd;
	pid_t pid;
	uint64_t since_ns;
	struct share *share;
	uint32_t bell_page; /* ATTACH_FORKED: a shared secret */
};

/* attach.c */
int run_attach_open(struct pager *p) MUST_CHECK;
void run_attach_accept(struct pager *p);
void run_attach_read(struct pager *p, struct attachment *c);
/* Ends attachments that take too long, if other processes wait to attach. */
void run_attach_sweep(struct pager *p);
/* A forked child shows its space by touching the page that it was told. */
int run_attach_bind(struct pager *p, struct space *s,
		    uint64_t bell_page) MUST_CHECK;

#endif
