/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains: what the NIC executes for a client of pages without any processor,
 * after ODRP (NSDI 2025). One chain is one queue pair to the client, which
 * takes messages only, and one that is connected to itself and does the work.
 */
#ifndef AQ_PFRAME_CHAIN_H
#define AQ_PFRAME_CHAIN_H

#include "pframe.h"

/*
 * The load chain, and the mapped one if there is one, must be made before the
 * invalidate chain, which waits for their answers and ends with them.
 *
 * Makes a chain for the space, in the domain `pd`, which no queue pair with
 * remote rights of a client may share. Its queue pair is in the state RESET.
 * -EOPNOTSUPP: not with this NIC.
 */
int pframe_chain_create(struct pframe_space *space, struct ibv_pd *pd,
			enum page_chain kind, unsigned without,
			struct pframe_chain **out) MUST_CHECK;
/* The queue pair is connected: takes messages from now on. */
int pframe_chain_start(struct pframe_chain *chain) MUST_CHECK;
/* Stops the chain wherever it is and puts the page frame that it held back
 * where it belongs. */
void pframe_chain_destroy(struct pframe_chain *chain);

/* Memory that it takes. */
uint64_t pframe_chain_bytes(const struct pframe_chain *chain);
/* The one to the client; messages only. */
struct ibv_qp *pframe_chain_qp(const struct pframe_chain *chain);
/* Whether the chain has stopped by itself: it touched memory that it may not,
 * or found no free page frame. */
bool pframe_chain_is_broken(struct pframe_chain *chain);
/*
 * Why it stopped by itself. 0: it did not. -ENOSPC: no page frame was free.
 * -EFAULT: the message named no entry of the table; -EEXIST: one that had a
 * page, where it must have none; -ENOENT: the reverse. -ECONNRESET: the client
 * took no answer. -EIO: anything else.
 */
int pframe_chain_why(struct pframe_chain *chain);
/* The same for the space's last chain of that kind, even if it is gone. */
int pframe_space_why(const struct pframe_space *space, enum page_chain kind);
const char *pframe_why_text(int why);
/* How often it has changed the table. */
uint64_t pframe_chain_runs(struct pframe_chain *chain);
const char *pframe_chain_name(enum page_chain kind);

#endif
