/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said to etcd's JSON gateway and what its answers mean; no I/O. Keys
 * and values are bytes there, in base64, and numbers are texts.
 *
 *   aquifer/RACK/.lead     COUNT ADDRESS of the leader; ends with its lease
 *   aquifer/RACK/.schema   of the rows
 *   aquifer/RACK/.term     what terms are counted from; mostly not there
 *   aquifer/RACK/KIND/KEY  a row
 *
 * Every transaction of a leader writes .lead anew with the next count. So the
 * key tells whether a transaction without an answer has happened, and whether
 * there was any since the rows were read.
 */
#ifndef AQ_ETCD_TEXT_H
#define AQ_ETCD_TEXT_H

#include <jansson.h>

#include "ledger.h"

enum {
	ETCD_PREFIX_MAX = 64,	    /* with the NUL */
	ETCD_KEY_MAX = 320,	    /* bytes, with the NUL */
	ETCD_PAGE_ROWS = 256,	    /* of one answer */
	ETCD_ANSWER_MAX = 32 << 20, /* bytes */
};

/* A key and its value, decoded; both end with a NUL that does not count. */
struct etcd_kv {
	const char *key;
	char *value;
	size_t value_bytes;
	uint64_t create, mod; /* revisions */
	uint64_t lease;
};

/* What there is beside rows. */
struct etcd_meta {
	char who[LEDGER_WHO_MAX];
	uint64_t lead_create, lead_mod; /* 0: nobody leads */
	uint64_t lead_lease;
	uint64_t lead_count; /* of transactions in this term */
	uint64_t schema;     /* 0: there is none */
	uint64_t base;
	uint64_t base_mod; /* 0: there is none */
};

/* The leader's key: what it was when it was last seen. */
struct etcd_term {
	uint64_t create, mod, lease;
	uint64_t count;
};

struct etcd_txn {
	bool succeeded;
	uint64_t revision;
	struct etcd_meta meta; /* what a refused one says about .lead */
};

/* ---- requests; NULL: no memory ------------------------------------------ */

json_t *etcd_ask_grant(unsigned ttl_s);
json_t *etcd_ask_lease(uint64_t lease); /* keepalive and revoke */
json_t *etcd_ask_compact(uint64_t revision);
/* What begins with the prefix, from `from` on, at a revision or 0: now. */
json_t *etcd_ask_rows(const char *prefix, const char *from, uint64_t revision);
json_t *etcd_ask_meta(const char *prefix);
/* To lead by that lease, if all is as in `seen`. */
json_t *etcd_ask_lead(const char *prefix, const struct etcd_meta *seen,
		      const char *who, uint64_t lease);
/* What terms are counted from, if nobody leads. */
json_t *etcd_ask_base(const char *prefix, uint64_t base);
/* Of several changes of one row the last one counts. */
json_t *etcd_ask_commit(const char *prefix, const struct etcd_term *term,
			const char *who, const struct ledger_change *change,
			unsigned count);

/* ---- answers; -EPROTO, with words: it is none --------------------------- */

/* An answer of that HTTP status: 0, or what is wrong. -EHOSTDOWN: ask another
 * one, and perhaps it has happened; all else: nothing has. */
int etcd_answer_status(long status, const json_t *answer) MUST_CHECK;
int etcd_answer_grant(const json_t *answer, uint64_t *lease) MUST_CHECK;
/* Seconds that a lease still has; 0: it is over. */
int etcd_answer_alive(const json_t *answer, uint64_t *ttl_s) MUST_CHECK;
int etcd_answer_revision(const json_t *answer, uint64_t *revision) MUST_CHECK;
int etcd_answer_txn(const json_t *answer, const char *prefix,
		    struct etcd_txn *out) MUST_CHECK;

typedef int (*etcd_kv_fn)(void *user, const struct etcd_kv *kv);

/* `last` is the key of the last one; *more: there are others behind it. */
int etcd_answer_range(const json_t *answer, etcd_kv_fn each, void *user,
		      char last[ETCD_KEY_MAX], bool *more) MUST_CHECK;

/* ---- what is in a key --------------------------------------------------- */

/* One that is not a row. -EBADMSG. */
int etcd_meta_take(struct etcd_meta *m, const char *prefix,
		   const struct etcd_kv *kv) MUST_CHECK;
/* Whether it is one of these; else it is a row. */
bool etcd_is_meta(const char *prefix, const char *key);
/* -EBADMSG: it is no row. `kind` has LEDGER_KIND_MAX + 1 bytes. */
int etcd_row_take(const char *prefix, const struct etcd_kv *kv, char *kind,
		  const char **key) MUST_CHECK;

#endif
