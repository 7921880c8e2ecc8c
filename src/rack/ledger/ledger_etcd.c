/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in etcd, which several controllers share. Each transaction is refused if
 * the leader's key (etcd_lead.h) is another one, or has been written since the
 * last one (etcd_text.h).
 *
 * That second guard makes it safe to ask another member when one does not
 * answer: of two copies of a transaction only one can happen, however late the
 * other one comes, and who is refused learns whether it was its own copy.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "etcd_lead.h"

enum {
	COMMIT_MS = 4000, /* etcd's own elections take up to two seconds */
};

static struct etcd_ledger *of(struct ledger *l)
{
	return container_of(l, struct etcd_ledger, base);
}

/* ---- what is there ------------------------------------------------------ */

struct reading {
	struct etcd_ledger *etcd;
	struct etcd_meta meta;
	ledger_row_fn each;
	void *user;
	bool has_rows;
};

static int take(void *user, const struct etcd_kv *kv)
{
	struct reading *r = user;
	const char *prefix = r->etcd->prefix;
	char kind[LEDGER_KIND_MAX + 1];
	const char *key = NULL;
	int err;

	if (etcd_is_meta(prefix, kv->key))
		return etcd_meta_take(&r->meta, prefix, kv);
	r->has_rows = true;
	err = etcd_row_take(prefix, kv, kind, &key);
	return err ? err : r->each(r->user, kind, key, kv->value);
}

static int check_schema(const struct etcd_ledger *e, uint64_t schema)
{
	if (!schema || schema == LEDGER_SCHEMA)
		return 0;
	return error_set(-EPROTONOSUPPORT,
			 "%s in etcd has schema %llu, this program knows %d; "
			 "use the release that wrote it",
			 e->prefix, (unsigned long long)schema, LEDGER_SCHEMA);
}

int etcd_look(struct etcd_ledger *e, struct etcd_meta *meta)
{
	struct reading r = {.etcd = e};
	char last[ETCD_KEY_MAX];
	json_t *answer;
	bool more;
	int err = etcd_call_ask(e->call, "/v3/kv/range",
				etcd_ask_meta(e->prefix), 0, NULL, &answer);

	if (!err)
		err = etcd_answer_revision(answer, &e->revision);
	if (!err)
		err = etcd_answer_range(answer, take, &r, last, &more);
	if (!err)
		err = check_schema(e, r.meta.schema);
	*meta = r.meta;
	json_decref(answer);
	return err;
}

/* All pages are of one revision; a history that is gone by then is read again
 * by who asked. */
static int read_pages(struct etcd_ledger *e, struct reading *r)
{
	char last[ETCD_KEY_MAX] = "";
	uint64_t revision = 0;
	bool more = true;
	int err = 0;

	while (more && !err) {
		char from[ETCD_KEY_MAX];
		json_t *answer;

		memcpy(from, last, sizeof(from));
		err = etcd_call_ask(e->call, "/v3/kv/range",
				    etcd_ask_rows(e->prefix,
						  from[0] ? from : NULL,
						  revision),
				    0, NULL, &answer);
		if (!err && !revision)
			err = etcd_answer_revision(answer, &revision);
		if (!err)
			err = etcd_answer_range(answer, take, r, last, &more);
		json_decref(answer);
		/* Every page is about other rows, so this ends. */
		if (!err && more && strcmp(last, from) <= 0)
			err = error_set(-EPROTO, "etcd's pages are in no "
						 "order");
	}
	return err;
}

static int etcd_read(struct ledger *l, ledger_row_fn each, void *user)
{
	struct etcd_ledger *e = of(l);
	struct reading r = {.etcd = e, .each = each, .user = user};
	int err = read_pages(e, &r);

	e->read_create = e->read_mod = 0;
	if (!err)
		err = check_schema(e, r.meta.schema);
	if (!err && r.has_rows && !r.meta.schema)
		err = error_set(-EBADMSG,
				"%s in etcd has rows and no schema: "
				"it is no ledger",
				e->prefix);
	if (err)
		return err;
	e->read_create = r.meta.lead_create;
	e->read_mod = r.meta.lead_mod;
	return 0;
}

/* ---- transactions ------------------------------------------------------- */

/* A refusal: by another leader, or by our own copy that has happened. */
static int judge(struct etcd_ledger *e, const struct etcd_txn *txn)
{
	if (txn->meta.lead_create != e->mine.create)
		return error_set(-ESTALE, "another controller leads: %s",
				 txn->meta.who[0] ? txn->meta.who
						  : "nobody yet");
	if (txn->meta.lead_count != e->mine.count + 1)
		return error_set(-ESTALE,
				 "somebody else has written %s.lead "
				 "in etcd",
				 e->prefix);
	e->mine.mod = txn->meta.lead_mod;
	e->mine.count++;
	return 0;
}

static int etcd_commit(struct ledger *l, uint64_t term,
		       const struct ledger_change *change, unsigned count)
{
	struct etcd_ledger *e = of(l);
	struct etcd_txn txn;
	bool may_have = false;
	json_t *answer;
	int err = etcd_lead_check(e, term);

	if (err)
		return err;
	err = etcd_call_ask(
		e->call, "/v3/kv/txn",
		etcd_ask_commit(e->prefix, &e->mine, e->who, change, count),
		COMMIT_MS, &may_have, &answer);
	if (!err) {
		/* It was done or not; an answer that does not say leaves it
		 * open. */
		err = etcd_answer_txn(answer, e->prefix, &txn);
		json_decref(answer);
		if (err)
			return LEDGER_UNKNOWN;
		e->revision = txn.revision;
		if (!txn.succeeded)
			return judge(e, &txn);
		e->mine.mod = txn.revision;
		e->mine.count++;
		return 0;
	}
	/* The lease went while it was asked: so did the key. */
	if (err == -ENOENT && !may_have)
		return error_set(-ESTALE, "the lease is over, another "
					  "controller may lead");
	return may_have ? LEDGER_UNKNOWN : err;
}

/* ---- life --------------------------------------------------------------- */

static void etcd_close(struct ledger *l)
{
	struct etcd_ledger *e = of(l);

	/* So that nobody has to wait; else the lease ends by itself. */
	if (e->call && etcd_lead_end(e))
		log_debug("ledger", "%s", error_last());
	etcd_call_close(e->call);
	free(e);
}

static const struct ledger_ops etcd_ops = {
	.lead = etcd_lead,
	.keep = etcd_keep,
	.leader = etcd_leader,
	.term = etcd_term,
	.raise = etcd_raise,
	.read = etcd_read,
	.commit = etcd_commit,
	.close = etcd_close,
};

int ledger_etcd_open(const char *urls, const struct ledger_place *place,
		     struct ledger **out)
{
	struct etcd_ledger *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return error_set(-ENOMEM, "no memory for a ledger");
	e->base.ops = &etcd_ops;
	e->base.lease_ns = ETCD_LEASE_S * 1000000000ull;
	(void)snprintf(e->prefix, sizeof(e->prefix), "aquifer/%.40s/",
		       place->rack ? place->rack : "local");
	err = etcd_call_open(urls, place, &e->call);
	if (err) {
		etcd_close(&e->base);
		return err;
	}
	*out = &e->base;
	return 0;
}
