/* SPDX-License-Identifier: Apache-2.0 */
/* What `aquifer kv` does with a whole table. */
#ifndef AQ_CLI_KV_H
#define AQ_CLI_KV_H

#include <aquifer/kv.h>

#include "cli_action.h"

struct cli_kv {
	struct cli_action_args common; /* NAME, KEY, VALUE */
	bool walk;		       /* get */
	bool keys_only;
	bool repair; /* before checking */
	bool merge;  /* load, although there are keys */
	struct aq_kv_options options;
	uint64_t ttl_ms;
	uint64_t count; /* fill */
	uint64_t value_bytes;
	struct aq_kv *kv;
	struct aq_kv_client *client;
};

/* Actions on a struct cli_kv. */
int cli_kv_scan(void *args) MUST_CHECK;
int cli_kv_fill(void *args) MUST_CHECK;
int cli_kv_check(void *args) MUST_CHECK;
int cli_kv_dump(void *args) MUST_CHECK;
int cli_kv_load(void *args) MUST_CHECK;

#endif
