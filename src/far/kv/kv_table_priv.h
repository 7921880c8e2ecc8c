/* SPDX-License-Identifier: Apache-2.0 */
/* The handle of a table in a rack, and its replicas there. */
#ifndef AQ_KV_TABLE_PRIV_H
#define AQ_KV_TABLE_PRIV_H

#include "kv_priv.h"

struct aq_kv {
	struct aq_rack *rack;
	char name[AQ_KV_NAME_MAX + 1];
	struct kv_geometry g;
	/* For making replicas only. */
	const char *node;
	bool may_use_host;
	struct kv_upkeep *upkeep; /* NULL: it was not opened for clients */
};

/* ---- kv_table.c --------------------------------------------------------- */

/* A handle of that name, of which nothing is known yet. */
int kv_table_new(struct aq_rack *rack, const char *name,
		 struct aq_kv **out) MUST_CHECK;

/* ---- kv_list.c ---------------------------------------------------------- */

/* What a look at a replica has found. */
struct kv_seen {
	struct kv_id id;
	bool is_read;	 /* the rest is known */
	bool is_damaged; /* it answers, and is no replica */
	struct kv_geometry g;
	uint64_t state;
	uint64_t keys;
};

/* Looks at all replicas of the table. */
int kv_survey(struct aq_kv *kv, struct aq_kv_listed *out) MUST_CHECK;
/* Fills in all but the name and the size. */
void kv_survey_judge(const struct kv_seen *seen, size_t count,
		     struct aq_kv_listed *out);

/* ---- kv_world.c --------------------------------------------------------- */

struct kv_world kv_world_of(struct aq_kv *kv);

/* A region of a table: the locks of a replica, or all else of it. */
struct kv_region {
	char table[AQ_KV_NAME_MAX + 1];
	struct kv_id id;
	bool is_locks;
};

void kv_region_name(const char *table, const struct kv_id *id, bool is_locks,
		    char out[KIT_REGION_BYTES]);
/* -ENOENT: no table has such a region. */
int kv_region_parse(const char *name, struct kv_region *out) MUST_CHECK;

/* Drops locks whose rows are gone: somebody has deleted a region by force.
 * Locks are made after their rows and dropped before, so none of a replica that
 * is only being made or dropped is meant. *count: how many there were. */
int kv_remains_drop(struct aq_kv *kv, unsigned *count) MUST_CHECK;

#endif
