/* SPDX-License-Identifier: Apache-2.0 */
/* What `aquifer kv` does with a whole table. */
#ifndef AQ_CLI_KV_H
#define AQ_CLI_KV_H

#include <aquifer/kv.h>

#include "base/base.h"

struct cli_kv {
	bool json;
	bool keys_only;
	bool repair; /* before checking */
	struct aq_kv_options options;
	uint64_t ttl_ms;
	uint64_t count; /* fill */
	uint64_t value_bytes;
	const char *name;
	const char *key;
	const char *value;
	struct aq_rack *rack;
	struct aq_kv *kv;
	struct aq_kv_client *client;
};

/* Each: 0, -errno, or 1 when it has printed what is wrong. */
int cli_kv_scan(struct cli_kv *a) MUST_CHECK;
int cli_kv_fill(struct cli_kv *a) MUST_CHECK;
int cli_kv_check(struct cli_kv *a) MUST_CHECK;

#endif
