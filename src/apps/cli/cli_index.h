/* SPDX-License-Identifier: Apache-2.0 */
/* What `aquifer index` does with a whole index. */
#ifndef AQ_CLI_INDEX_H
#define AQ_CLI_INDEX_H

#include <aquifer/index.h>

#include "cli_action.h"

enum {
	CLI_INDEX_THREADS_MAX = 64,
};

struct cli_index {
	struct cli_action_args common; /* NAME, KEY, VALUE */
	bool keys_only;
	bool merge; /* load, although there are keys */
	struct aq_index_options options;
	const char *from, *to; /* a range */
	bool walk;	       /* get */
	uint64_t count;	       /* fill; scan: 0: all */
	uint64_t value_bytes;
	uint32_t threads;
	struct aq_index *index;
	struct aq_index_client *client;
	enum aq_index_kind kind;
};

/* Actions on a struct cli_index. */
int cli_index_scan(void *args) MUST_CHECK;
int cli_index_count(void *args) MUST_CHECK;
int cli_index_sum(void *args) MUST_CHECK;
int cli_index_min(void *args) MUST_CHECK;
int cli_index_max(void *args) MUST_CHECK;
int cli_index_fill(void *args) MUST_CHECK;
int cli_index_check(void *args) MUST_CHECK;
int cli_index_dump(void *args) MUST_CHECK;
int cli_index_load(void *args) MUST_CHECK;

#endif
