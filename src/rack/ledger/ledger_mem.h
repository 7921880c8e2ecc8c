/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger in memory, which several handles share as several controllers share
 * a store: who leads has a lease, counted on the store's clock.
 */
#ifndef AQ_LEDGER_MEM_H
#define AQ_LEDGER_MEM_H

#include "ledger.h"

struct ledger_store;

/* -ENOMEM. */
int ledger_store_create(struct ledger_store **out) MUST_CHECK;
/* All of its handles are closed. */
void ledger_store_destroy(struct ledger_store *s);
/* How long one may lead without ledger_keep; 0, as at first: for ever. */
void ledger_store_set_lease(struct ledger_store *s, uint64_t lease_ns);
/* The store's clock, which only moves when told to. */
void ledger_store_set_now(struct ledger_store *s, uint64_t now_ns);
/* The term of the last leader; 0: there was none. */
uint64_t ledger_store_term(const struct ledger_store *s);

/* A handle of a store, which the caller keeps. */
int ledger_mem_open(struct ledger_store *s, struct ledger **out) MUST_CHECK;
/* A handle with a store of its own. */
int ledger_mem_alone(struct ledger **out) MUST_CHECK;

#endif
