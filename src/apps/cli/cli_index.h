/* SPDX-License-Identifier: Apache-2.0 */
/* What `aquifer index` does with a whole index. */
#ifndef AQ_CLI_INDEX_H
#define AQ_CLI_INDEX_H

#include <aquifer/index.h>

#include "base/base.h"

enum {
	CLI_INDEX_THREADS_MAX = 64,
};

struct cli_index {
	bool json;
	bool keys_only;
	struct aq_index_options options;
	const char *from, *to; /* scan */
	uint64_t count;	       /* fill; scan: 0: all */
	uint64_t value_bytes;
	uint32_t threads;
	const char *name;
	const char *key;
	const char *value;
	struct aq_rack *rack;
	struct aq_index *index;
	struct aq_index_client *client;
	enum aq_index_kind kind;
};

/* A word of the command line as a key of the index: its bytes, or a number for
 * versions. -EINVAL with words on stderr. */
int cli_index_key(const struct cli_index *a, const char *word,
		  uint8_t key[AQ_INDEX_KEY_MAX], size_t *len) MUST_CHECK;

/* Each: 0, -errno, or 1 when it has printed what is wrong. */
int cli_index_scan(struct cli_index *a) MUST_CHECK;
int cli_index_fill(struct cli_index *a) MUST_CHECK;
int cli_index_check(struct cli_index *a) MUST_CHECK;

#endif
