/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of `aquifer shared` that ask the memory node which leads. */
#ifndef AQ_CLI_SHARED_H
#define AQ_CLI_SHARED_H

#include <jansson.h>

#include "cli_action.h"

struct cli_shared_args {
	struct cli_action_args common; /* NAME, and more */
	bool has_offset, has_length;
	uint64_t offset, length;
	uint32_t copies;
	const char *on_loss;
	/* serve */
	const char *name, *user;
	uint64_t cache_bytes;
	uint32_t idle_ms;
	bool is_unconfined;
};

enum {
	CLI_SHARED_RACK_MAX = 64,
};

/* One request to the node that leads; the answer, if wanted, is the caller's.
 * -errno with words. `body` is taken over. */
int cli_shared_ask(const char *method, const char *path, json_t *body,
		   json_t **answer) MUST_CHECK;
int cli_shared_rack(char name[CLI_SHARED_RACK_MAX]) MUST_CHECK;
/* Compares this machine's cache with the switch. Contradictions are appended;
 * *bytes: how much it has. */
int cli_shared_check_cache(json_t *wrong, uint64_t *bytes) MUST_CHECK;

int cli_shared_create(void *args);
int cli_shared_list(void *args);
int cli_shared_stat(void *args);
int cli_shared_allow(void *args);
int cli_shared_repair(void *args);
int cli_shared_move(void *args);
int cli_shared_check(void *args);
int cli_shared_delete(void *args);
int cli_shared_machines(void *args);
/* This machine's cache, until a signal ends it. */
int cli_shared_serve(void *args);

#endif
