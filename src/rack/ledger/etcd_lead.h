/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who leads, in an etcd that several controllers share: whoever holds a lease
 * of two seconds with the key .lead. The term is the revision at which that key
 * was made.
 */
#ifndef AQ_ETCD_LEAD_H
#define AQ_ETCD_LEAD_H

#include "etcd_call.h"
#include "etcd_text.h"
#include "ledger.h"

enum {
	ETCD_LEASE_S = 2, /* the least that etcd gives */
};

struct etcd_ledger {
	struct ledger base;
	struct etcd_call *call;
	char prefix[ETCD_PREFIX_MAX];
	char who[LEDGER_WHO_MAX];
	/* Its own key, as it was written last. A lease that may still live, and
	 * be anybody's reason to wait, is kept until it is known to be over. */
	struct etcd_term mine;
	uint64_t count_from; /* of terms */
	/* The leader's key when all rows were read. */
	uint64_t read_create, read_mod;
	uint64_t revision, compacted;
};

/* As the same functions of ledger.h. */
int etcd_lead(struct ledger *l, const char *who, uint64_t *term) MUST_CHECK;
int etcd_keep(struct ledger *l, uint64_t term) MUST_CHECK;
int etcd_leader(struct ledger *l, char who[LEDGER_WHO_MAX]) MUST_CHECK;
int etcd_term(struct ledger *l, uint64_t *term) MUST_CHECK;
int etcd_raise(struct ledger *l, uint64_t term) MUST_CHECK;

/* -ESTALE: it does not lead in that term. */
int etcd_lead_check(const struct etcd_ledger *e, uint64_t term) MUST_CHECK;
/* Ends its lease, if it may have one. */
int etcd_lead_end(struct etcd_ledger *e) MUST_CHECK;

/* What is known of the leader and the schema, without the rows. */
int etcd_look(struct etcd_ledger *e, struct etcd_meta *meta) MUST_CHECK;

#endif
