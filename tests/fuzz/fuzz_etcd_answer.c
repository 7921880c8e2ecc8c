/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an answer of etcd's gateway, to every question. What is taken
 * has the shape of what we write: rows that every back end takes, in order, and
 * a leader whose name fits.
 */
#include <string.h>

#include "base/base.h"
#include "fuzz.h"
#include "ledger/etcd_text.h"

static const char prefix[] = "aquifer/r/";

struct seen {
	struct etcd_meta meta;
	char before[ETCD_KEY_MAX];
};

static int take(void *user, const struct etcd_kv *kv)
{
	struct seen *s = user;
	char kind[LEDGER_KIND_MAX + 1];
	const char *key;

	ASSERT(strlen(kv->key) < ETCD_KEY_MAX);
	ASSERT(kv->value[kv->value_bytes] == 0);
	if (etcd_is_meta(prefix, kv->key)) {
		if (etcd_meta_take(&s->meta, prefix, kv))
			return -1;
		ASSERT(strlen(s->meta.who) < LEDGER_WHO_MAX);
		ASSERT(!s->meta.lead_create == !s->meta.lead_mod);
	} else if (etcd_row_take(prefix, kv, kind, &key) == 0) {
		struct ledger_change c = {kind, key, kv->value};

		ASSERT(ledger_change_check(&c) == 0);
		ASSERT(etcd_meta_take(&s->meta, prefix, kv));
	}
	memcpy(s->before, kv->key, strlen(kv->key) + 1);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	json_t *answer = json_loadb((const char *)data, len_bytes,
				    JSON_REJECT_DUPLICATES, NULL);
	char last[ETCD_KEY_MAX];
	struct seen s = {0};
	struct etcd_txn txn;
	uint64_t n = 0;
	bool more;

	if (etcd_answer_status(200, answer) == 0)
		ASSERT(json_is_object(answer));
	ASSERT(etcd_answer_status(503, answer) != 0);
	if (etcd_answer_grant(answer, &n) == 0)
		ASSERT(n);
	(void)!etcd_answer_alive(answer, &n);
	if (etcd_answer_revision(answer, &n) == 0)
		ASSERT(n);
	(void)!etcd_answer_txn(answer, prefix, &txn);
	if (etcd_answer_range(answer, take, &s, last, &more) == 0)
		ASSERT(!more || last[0]);
	json_decref(answer);
	return 0;
}
