/* SPDX-License-Identifier: Apache-2.0 */
/* Leading by a lease of etcd. */
#include "etcd_lead.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

enum {
	COMPACT_EVERY = 500, /* revisions */
	COMPACT_LEAVE = 100, /* for who reads page by page */
};

static struct etcd_ledger *of(struct ledger *l)
{
	return container_of(l, struct etcd_ledger, base);
}

int etcd_lead_end(struct etcd_ledger *e)
{
	json_t *answer;
	int err;

	if (!e->mine.lease)
		return 0;
	err = etcd_call_ask(e->call, "/v3/lease/revoke",
			    etcd_ask_lease(e->mine.lease), 0, NULL, &answer);
	json_decref(answer);
	if (err && err != -ENOENT)
		return err;
	e->mine = (struct etcd_term){0};
	return 0;
}

static int grant(struct etcd_ledger *e)
{
	json_t *answer;
	int err = etcd_call_ask(e->call, "/v3/lease/grant",
				etcd_ask_grant(ETCD_LEASE_S), 0, NULL, &answer);

	if (!err)
		err = etcd_answer_grant(answer, &e->mine.lease);
	json_decref(answer);
	return err;
}

static int busy(const char *who)
{
	return error_set(-EBUSY, "%s leads", who[0] ? who : "another one");
}

/* The key is ours if it has our lease, also where the first answer was lost. */
static int take_lead(struct etcd_ledger *e, const struct etcd_meta *seen,
		     const char *who)
{
	struct etcd_txn txn;
	json_t *answer;
	int err = etcd_call_ask(
		e->call, "/v3/kv/txn",
		etcd_ask_lead(e->prefix, seen, who, e->mine.lease), 0, NULL,
		&answer);

	if (!err)
		err = etcd_answer_txn(answer, e->prefix, &txn);
	json_decref(answer);
	if (err)
		return err;
	if (!txn.succeeded && txn.meta.lead_lease != e->mine.lease)
		return busy(txn.meta.who);
	e->revision = txn.revision;
	e->mine.create = txn.succeeded ? txn.revision : txn.meta.lead_create;
	e->mine.mod = txn.succeeded ? txn.revision : txn.meta.lead_mod;
	e->mine.count = 0;
	return 0;
}

int etcd_lead(struct ledger *l, const char *who, uint64_t *term)
{
	struct etcd_ledger *e = of(l);
	struct etcd_meta seen;
	int err = etcd_lead_end(e);

	l->is_unchanged = false;
	if (!err)
		err = etcd_look(e, &seen);
	if (err)
		return err;
	if (seen.lead_create) {
		l->is_unchanged = seen.lead_create == e->read_create &&
				  seen.lead_mod == e->read_mod;
		return busy(seen.who);
	}
	err = grant(e);
	if (!err)
		err = take_lead(e, &seen, who);
	if (err)
		return err;
	(void)snprintf(e->who, sizeof(e->who), "%s", who);
	e->count_from = seen.base;
	*term = e->count_from + e->mine.create;
	return 0;
}

/* Another application's history in the same etcd is compacted, too: there is
 * one history of all keys. */
static void compact(struct etcd_ledger *e)
{
	json_t *answer;
	int err;

	if (!e->compacted)
		e->compacted = e->revision;
	if (e->revision < e->compacted + COMPACT_EVERY)
		return;
	err = etcd_call_ask(e->call, "/v3/kv/compaction",
			    etcd_ask_compact(e->revision - COMPACT_LEAVE), 0,
			    NULL, &answer);
	json_decref(answer);
	/* -EAGAIN: somebody else has done it. */
	if (err && err != -EAGAIN)
		log_warn("ledger", "the history is not compacted: %s",
			 error_last());
	e->compacted = e->revision;
}

int etcd_lead_check(const struct etcd_ledger *e, uint64_t term)
{
	if (e->mine.create && term == e->count_from + e->mine.create)
		return 0;
	return error_set(-ESTALE, "this controller leads in no term %llu",
			 (unsigned long long)term);
}

int etcd_keep(struct ledger *l, uint64_t term)
{
	struct etcd_ledger *e = of(l);
	uint64_t ttl_s = 0;
	json_t *answer;
	int err = etcd_lead_check(e, term);

	if (err)
		return err;
	err = etcd_call_ask(e->call, "/v3/lease/keepalive",
			    etcd_ask_lease(e->mine.lease), 0, NULL, &answer);
	if (!err)
		err = etcd_answer_alive(answer, &ttl_s);
	if (!err)
		err = etcd_answer_revision(answer, &e->revision);
	json_decref(answer);
	if (err)
		return err;
	if (!ttl_s) {
		e->mine = (struct etcd_term){0};
		return error_set(-ESTALE, "the lease is over, another "
					  "controller may lead");
	}
	compact(e);
	return 0;
}

int etcd_leader(struct ledger *l, char who[LEDGER_WHO_MAX])
{
	struct etcd_meta seen;
	int err = etcd_look(of(l), &seen);

	if (err)
		return err;
	if (!seen.lead_create)
		return error_set(-ENOENT, "nobody leads");
	memcpy(who, seen.who, sizeof(seen.who));
	return 0;
}

/* Terms are revisions, and no key was made at a later one. */
int etcd_term(struct ledger *l, uint64_t *term)
{
	struct etcd_ledger *e = of(l);
	struct etcd_meta seen;
	int err = etcd_look(e, &seen);

	if (!err)
		*term = seen.base + e->revision;
	return err;
}

int etcd_raise(struct ledger *l, uint64_t term)
{
	struct etcd_ledger *e = of(l);
	struct etcd_meta seen;
	struct etcd_txn txn;
	json_t *answer;
	int err = etcd_look(e, &seen);

	if (err || seen.base >= term)
		return err;
	err = etcd_call_ask(e->call, "/v3/kv/txn",
			    etcd_ask_base(e->prefix, term), 0, NULL, &answer);
	if (!err)
		err = etcd_answer_txn(answer, e->prefix, &txn);
	json_decref(answer);
	return err || txn.succeeded ? err : busy(txn.meta.who);
}
