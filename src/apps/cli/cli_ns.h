/* SPDX-License-Identifier: Apache-2.0 */
/* Names of elastic memory for `aquifer ns`: questions to the controller, and
 * what is printed of them. */
#ifndef AQ_CLI_NS_H
#define AQ_CLI_NS_H

#include "cli_admin.h"

enum {
	CLI_NS_PATH_MAX = 512,
};

/* "/v1/ns" and the path; says on stderr when that is too long. CLI_GO, or the
 * exit code. */
int cli_ns_path(const char *route, const char *path,
		char out[CLI_NS_PATH_MAX]) MUST_CHECK;
/* One request to the controller. `body` is taken over; *reply may be NULL. Says
 * on stderr what is wrong: then the exit code, else CLI_OK. */
int cli_ns_ask(const char *method, const char *route, const char *path,
	       json_t *body, json_t **reply) MUST_CHECK;

/* A line for each of these names. */
void cli_ns_print_list(const json_t *names);
/* As they lie below each other. */
void cli_ns_print_tree(const json_t *names);

/* Writes all below a name to the vault, or loads it from there, and waits for
 * the end; `body`, which is taken over, says how. *report is the caller's;
 * NULL: it is printed. */
int cli_ns_vault(bool is_load, json_t *body, const char *path,
		 json_t **report) MUST_CHECK;

/* Bits of a list like "put,get"; NULL: 0. */
int cli_ns_watch_kinds(const char *text, uint32_t *out) MUST_CHECK;
/* Prints what is done to an object: so many events (0: all), until nothing
 * happened for so long (0: for ever), which is -EAGAIN. */
int cli_ns_watch(struct aq_rack *rack, const char *path, uint32_t events,
		 uint64_t count, uint32_t wait_ms, bool is_json) MUST_CHECK;

/* Renews while the command runs; its exit code. */
int cli_ns_hold(const char *path, char **command) MUST_CHECK;

#endif
